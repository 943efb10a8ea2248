use super::*;

#[test]
fn a_part_of_a_millionth_counts_as_one() {
    let prices = Prices { micro_usd_per_million_in: 3_000_000, micro_usd_per_million_out: 15_000_000 };
    assert_eq!(prices.of(1_000_000, 0).micro_usd, 3_000_000);
    assert_eq!(prices.of(1, 1).micro_usd, 18);
    assert_eq!(Prices { micro_usd_per_million_in: 1, ..Prices::default() }.of(1, 0).micro_usd, 1);
    assert_eq!(prices.of(u64::MAX, u64::MAX).micro_usd, u64::MAX);
}

#[test]
fn dollars_are_written_with_all_their_digits() {
    assert_eq!([usd(0), usd(1), usd(1_500_000), usd(12_345_678)], ["0.00", "0.000001", "1.50", "12.345678"]);
}

#[test]
fn a_budget_stops_before_the_call_that_would_break_it() {
    let tokens = |most| Limit { tokens: Some(most), micro_usd: None };
    let spent = |tokens_in| Spent { tokens_in, tokens_out: 0, micro_usd: 2 * tokens_in };
    let budget = Budget { day: tokens(100), change: Limit { tokens: None, micro_usd: Some(50) } };
    assert_eq!(budget.allows(spent(90), spent(15), spent(10)), Ok(()));
    let today = budget.allows(spent(91), spent(0), spent(10)).unwrap_err();
    assert_eq!(
        today,
        "this repository's budget for today is 100 tokens: 91 are spent, and the call may take 10"
    );
    let change = budget.allows(spent(0), spent(16), spent(10)).unwrap_err();
    assert_eq!(
        change,
        "the budget of this change is 0.00005 USD: 0.000032 are spent, and the call may cost 0.00002"
    );
    assert_eq!(Budget::default().allows(spent(u64::MAX / 4), spent(1), spent(1)), Ok(()));
}

#[test]
fn days_begin_at_midnight_utc() {
    assert_eq!(day(Millis(86_399_999)), 0);
    assert_eq!(day(Millis(86_400_000)), 1);
}
