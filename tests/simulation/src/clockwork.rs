//! Tasks and time: one thread, one queue of events, the order decided by a seed.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use yard_common::Millis;

/// A task's work.
pub type Work = Pin<Box<dyn Future<Output = ()>>>;
/// A task's number.
pub type TaskNo = u64;

struct Task {
    owner: String,
    /// Absent while it is polled.
    work: Option<Work>,
}

/// A flag that an event sets before it polls the task that waits for it.
type Flag = Rc<Cell<bool>>;

struct Inner {
    now: u64,
    /// Counts tasks and events: every number is used once.
    next: u64,
    queue: BTreeMap<(u64, u32, u64), (TaskNo, Option<Flag>)>,
    tasks: BTreeMap<TaskNo, Task>,
    current: TaskNo,
    rng: fastrand::Rng,
}

/// Tasks, time and chance.
#[derive(Clone)]
pub struct Clockwork(Rc<RefCell<Inner>>);

impl Clockwork {
    /// A clock that stands at `now`, with chance from `seed`.
    #[must_use]
    pub fn new(now: Millis, seed: u64) -> Self {
        let rng = fastrand::Rng::with_seed(seed);
        let (queue, tasks) = (BTreeMap::new(), BTreeMap::new());
        Self(Rc::new(RefCell::new(Inner { now: now.0, next: 1, queue, tasks, current: 0, rng })))
    }

    /// The time.
    #[must_use]
    pub fn now(&self) -> Millis {
        Millis(self.0.borrow().now)
    }

    /// A number below `n`; 0 when `n` is 0.
    #[must_use]
    pub fn below(&self, n: u64) -> u64 {
        if n == 0 { 0 } else { self.0.borrow_mut().rng.u64(0..n) }
    }

    /// True in `thousandths` of 1,000 cases.
    #[must_use]
    pub fn chance(&self, thousandths: u64) -> bool {
        self.below(1000) < thousandths
    }

    /// One of the items.
    ///
    /// # Panics
    /// When there is none.
    #[must_use]
    pub fn pick<'a, T>(&self, items: &'a [T]) -> &'a T {
        &items[usize::try_from(self.below(items.len() as u64)).unwrap_or(0)]
    }

    fn schedule(&self, at: u64, task: TaskNo, flag: Option<Flag>) {
        let mut inner = self.0.borrow_mut();
        inner.next += 1;
        let (tie, number) = (inner.rng.u32(..), inner.next);
        let at = at.max(inner.now);
        inner.queue.insert((at, tie, number), (task, flag));
    }

    /// Starts a task that belongs to `owner`.
    pub fn spawn(&self, owner: &str, work: impl Future<Output = ()> + 'static) -> TaskNo {
        let (task, now) = {
            let mut inner = self.0.borrow_mut();
            inner.next += 1;
            let task = inner.next;
            inner.tasks.insert(task, Task { owner: owner.to_owned(), work: Some(Box::pin(work)) });
            (task, inner.now)
        };
        self.schedule(now, task, None);
        task
    }

    /// Ends all tasks whose owner fits; what they held is dropped.
    pub fn kill(&self, fits: impl Fn(&str) -> bool) {
        let killed: Vec<Task> = {
            let mut inner = self.0.borrow_mut();
            let current = inner.current;
            let fit = |(no, task): (&TaskNo, &Task)| (*no != current && fits(&task.owner)).then_some(*no);
            let numbers: Vec<TaskNo> = inner.tasks.iter().filter_map(fit).collect();
            numbers.into_iter().filter_map(|no| inner.tasks.remove(&no)).collect()
        };
        drop(killed);
    }

    /// Lets `ms` pass.
    pub fn sleep(&self, ms: u64) -> impl Future<Output = ()> + use<> {
        Sleep { clock: self.clone(), ms, flag: None }
    }

    /// The next event; false when there is none.
    pub fn step(&self) -> bool {
        let next = {
            let mut inner = self.0.borrow_mut();
            let Some(((at, ..), (task, flag))) = inner.queue.pop_first() else { return false };
            inner.now = inner.now.max(at);
            flag.inspect(|flag| flag.set(true));
            let work = inner.tasks.get_mut(&task).and_then(|task| task.work.take());
            inner.current = task;
            work.map(|work| (task, work))
        };
        if let Some((task, mut work)) = next {
            let done = work.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_ready();
            let mut inner = self.0.borrow_mut();
            inner.current = 0;
            let ended = if done {
                inner.tasks.remove(&task)
            } else {
                if let Some(task) = inner.tasks.get_mut(&task) {
                    task.work = Some(work);
                }
                None
            };
            drop(inner);
            drop(ended);
        }
        true
    }
}

struct Sleep {
    clock: Clockwork,
    ms: u64,
    flag: Option<Flag>,
}

impl Future for Sleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<()> {
        if let Some(flag) = &self.flag {
            return if flag.get() { Poll::Ready(()) } else { Poll::Pending };
        }
        let flag = Flag::default();
        let (at, task) = {
            let inner = self.clock.0.borrow();
            (inner.now.saturating_add(self.ms), inner.current)
        };
        self.clock.schedule(at, task, Some(Rc::clone(&flag)));
        self.flag = Some(flag);
        Poll::Pending
    }
}

/// Where an answer is put.
pub struct Sender<T>(Rc<RefCell<Slot<T>>>, Clockwork);

/// Where it is waited for.
pub struct Receiver<T>(Rc<RefCell<Slot<T>>>, Clockwork);

struct Slot<T> {
    value: Option<T>,
    over: bool,
    waiter: Option<TaskNo>,
}

/// A place for one answer.
pub fn gate<T>(clock: &Clockwork) -> (Sender<T>, Receiver<T>) {
    let slot = Rc::new(RefCell::new(Slot { value: None, over: false, waiter: None }));
    (Sender(Rc::clone(&slot), clock.clone()), Receiver(slot, clock.clone()))
}

impl<T> Sender<T> {
    /// Gives the answer.
    pub fn send(self, value: T) {
        self.0.borrow_mut().value = Some(value);
    }
}

impl<T> Drop for Sender<T> {
    fn drop(&mut self) {
        let mut slot = self.0.borrow_mut();
        slot.over = true;
        if let Some(waiter) = slot.waiter {
            let now = self.1.now().0;
            self.1.schedule(now, waiter, None);
        }
    }
}

impl<T> Future for Receiver<T> {
    type Output = Option<T>;

    /// The answer; `None` when whoever owed it is gone.
    fn poll(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<T>> {
        let mut slot = self.0.borrow_mut();
        if slot.over {
            return Poll::Ready(slot.value.take());
        }
        slot.waiter = Some(self.1.0.borrow().current);
        Poll::Pending
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(seed: u64) -> Vec<u64> {
        let clock = Clockwork::new(Millis(0), seed);
        let seen = Rc::new(RefCell::new(Vec::new()));
        for n in 0..8 {
            let (clock, seen) = (clock.clone(), Rc::clone(&seen));
            clock.clone().spawn("a", async move {
                clock.sleep(10).await;
                seen.borrow_mut().push(n);
            });
        }
        while clock.step() {}
        seen.take()
    }

    #[test]
    fn the_same_seed_is_the_same_order_and_another_seed_another() {
        assert_eq!(order(1), order(1));
        assert_ne!(order(1), order(2));
    }

    #[test]
    fn an_answer_whose_sender_was_killed_never_comes_and_says_so() {
        let clock = Clockwork::new(Millis(0), 1);
        let (sender, receiver) = gate::<u32>(&clock);
        let inner = clock.clone();
        clock.spawn("object", async move {
            inner.sleep(1000).await;
            sender.send(1);
        });
        let seen = Rc::new(Cell::new(None));
        let told = Rc::clone(&seen);
        clock.spawn("caller", async move { told.set(Some(receiver.await)) });
        let killer = clock.clone();
        clock.spawn("chaos", async move {
            killer.sleep(500).await;
            killer.kill(|owner| owner == "object");
        });
        while clock.step() {}
        assert_eq!(seen.get(), Some(None));
        assert!(clock.now() >= Millis(500));
    }
}
