use std::cell::Cell;
use std::future::{pending, ready};

use super::within;
use crate::native::block_on;

/// Says when it is dropped.
struct Told<'a>(&'a Cell<bool>);

impl Drop for Told<'_> {
    fn drop(&mut self) {
        self.0.set(true);
    }
}

#[test]
fn an_answer_that_never_comes_is_given_up_and_what_waited_for_it_is_dropped() {
    let dropped = Cell::new(false);
    let waits = async {
        let _told = Told(&dropped);
        pending::<()>().await;
    };
    assert_eq!(block_on(within(waits, ready(()))), None);
    assert!(dropped.get());
}

#[test]
fn an_answer_that_comes_in_time_is_taken() {
    assert_eq!(block_on(within(ready(7), pending())), Some(7));
}
