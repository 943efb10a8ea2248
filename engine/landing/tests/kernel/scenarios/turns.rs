//! Landing turns.

use std::collections::BTreeMap;

use yard_common::landing::LandRequest;
use yard_common::{AttemptNo, LaneName, Refusal, Version};

use yard_landing::{Ledger as _, turn};

use crate::merge::Files;
use crate::stories;
use crate::world::{TURN_MS, World, change, files, fork, lane, with};

fn start() -> Files {
    files(&[("a", "0"), ("b", "0"), ("c", "0"), ("d", "0")])
}

fn lanes() -> Vec<LaneName> {
    ["a", "b", "c", "d"].map(lane).to_vec()
}

/// New work in a lane of its own, assembled on main and tested.
fn candidate(world: &mut World, of: &LaneName, n: usize) -> LandRequest {
    let (main, text) = (world.main(), n.to_string());
    let files = with(&world.main_files(), &[(of.as_str(), Some(&text))]);
    let id = change(&format!("{of}-{n}"));
    let mut push = world.work(&fork(of.as_str()), Some(&id), main, &files);
    push.lane = of.clone();
    world.submit(&push).unwrap();
    again(world, of, n)
}

fn again(world: &mut World, of: &LaneName, n: usize) -> LandRequest {
    let id = change(&format!("{of}-{n}"));
    let mut request = world.assemble(of, &[(id, Version(1))]).unwrap();
    world.tested(&mut request);
    request
}

/// The most refusals in a row of one lane, when lanes with slow tests and one fast lane all work at once.
fn starvation(rounds: u64) -> usize {
    let mut world = World::new(&start());
    let lanes = lanes();
    let test_ms = |at: usize| if at == 0 { 3 } else { 40 };
    let mut at_work: BTreeMap<usize, (usize, u64, LandRequest)> = BTreeMap::new();
    let mut refused = vec![0usize; lanes.len()];
    let mut worst = 0;
    let mut number = vec![0usize; lanes.len()];
    for _ in 0..rounds {
        world.now = world.now.plus(1);
        for (at, of) in lanes.iter().enumerate() {
            let Some((n, ready, mut request)) = at_work.remove(&at) else {
                number[at] += 1;
                let request = candidate(&mut world, of, number[at]);
                at_work.insert(at, (number[at], world.now.0 + test_ms(at), request));
                continue;
            };
            if world.now.0 < ready {
                at_work.insert(at, (n, ready, request));
                continue;
            }
            match world.land(&request) {
                Ok(_) => refused[at] = 0,
                Err(Refusal::Turn { .. }) => {
                    request.key.attempt = request.key.attempt.next();
                    at_work.insert(at, (n, world.now.0 + 2, request));
                }
                Err(Refusal::Moved { .. }) => {
                    refused[at] += 1;
                    worst = worst.max(refused[at]);
                    let request = again(&mut world, of, n);
                    at_work.insert(at, (n, world.now.0 + test_ms(at), request));
                }
                Err(other) => panic!("{other}"),
            }
        }
    }
    world.check();
    worst
}

stories! {
    fn a_slow_lane_does_not_starve_beside_fast_ones() {
        let worst = starvation(700);
        assert!(worst <= 4, "{worst} refusals in a row");
    }

    fn a_moved_lane_has_the_turn_until_it_has_an_answer() {
        let mut world = World::new(&start());
        let [a, b] = ["a", "b"].map(lane);
        let first = candidate(&mut world, &a, 1);
        let late = candidate(&mut world, &b, 1);
        world.land(&first).unwrap();
        assert!(matches!(world.land(&late), Err(Refusal::Moved { .. })));
        let mut next = candidate(&mut world, &a, 2);
        assert!(matches!(world.land(&next), Err(Refusal::Turn { lane, .. }) if lane == b));
        let retried = again(&mut world, &b, 1);
        world.land(&retried).unwrap();
        next.key.attempt = AttemptNo(2);
        assert!(matches!(world.land(&next), Err(Refusal::Moved { .. })));
        world.check();
    }

    fn a_turn_ends_at_its_time() {
        let mut world = World::new(&start());
        let [a, b] = ["a", "b"].map(lane);
        let first = candidate(&mut world, &a, 1);
        let late = candidate(&mut world, &b, 1);
        world.land(&first).unwrap();
        world.land(&late).unwrap_err();
        world.now = world.now.plus(TURN_MS);
        let next = candidate(&mut world, &a, 2);
        world.land(&next).unwrap();
        world.check();
    }

    fn turns_are_given_in_order_of_asking() {
        let mut world = World::new(&start());
        let all = lanes();
        let requests: Vec<LandRequest> = all.iter().map(|of| candidate(&mut world, of, 1)).collect();
        for (at, request) in requests.iter().enumerate() {
            assert_eq!(world.land(request).is_ok(), at == 0);
        }
        for of in &all[1..] {
            let holder = turn::holder(&world.ledger.turns(), world.now).map(|turn| turn.0);
            assert_eq!(holder.as_ref(), Some(of));
            let request = again(&mut world, of, 1);
            world.land(&request).unwrap();
        }
        assert_eq!(turn::holder(&world.ledger.turns(), world.now), None);
        world.check();
    }

    fn a_dead_lane_in_the_queue_costs_its_own_time_only() {
        let mut world = World::new(&start());
        let all = lanes();
        let requests: Vec<LandRequest> = all.iter().map(|of| candidate(&mut world, of, 1)).collect();
        for request in &requests {
            let _ = world.land(request);
        }
        // b and c never come back: d has the turn after both leases are over.
        world.now = world.now.plus(2 * TURN_MS);
        assert_eq!(turn::holder(&world.ledger.turns(), world.now).map(|turn| turn.0), Some(all[3].clone()));
        let request = again(&mut world, &all[3], 1);
        world.land(&request).unwrap();
        world.check();
    }
}
