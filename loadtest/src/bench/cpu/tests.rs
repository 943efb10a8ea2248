use super::*;

fn reading(process_ms: u64, threads: &[(&str, u64, u64)]) -> Reading {
    let threads = threads.iter().map(|(id, on_core, waiting)| {
        ((*id).to_owned(), Thread { on_core: on_core * 1_000_000, waiting: waiting * 1_000_000 })
    });
    Reading { process_ms, threads: threads.collect() }
}

#[test]
fn waiting_for_a_core_is_nobodys_and_the_runtimes_work_is_shared() {
    let before = reading(1000, &[("1", 500, 500), ("2", 900, 0)]);
    let after = reading(1600, &[("1", 900, 900), ("2", 1000, 0)]);
    let busy = serde_json::json!({ "busy_ms_repository": 200, "busy_ms_lane": 150, "busy_ms_edge": 50 });
    let split = after.since(&before, &busy);
    let near = |one: f64, other: f64| assert!((one - other).abs() < 1e-9, "{one} is not {other}");
    near(split.on_core, 0.5);
    near(split.process_ms, 600.0);
    near(split.thread_ms, 400.0);
    assert_eq!(split.busiest_object().0, "repository");
    near(split.busiest_object().1, 100.0);
    near(split.rest_ms(), 400.0);
    near(split.runtime_factor(), 2.0);
}

#[test]
fn nothing_metered_is_no_factor() {
    let split = reading(5, &[("1", 5, 0)]).since(&reading(0, &[]), &serde_json::json!({}));
    assert!((split.runtime_factor() - 1.0).abs() < 1e-9);
}
