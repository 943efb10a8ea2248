//! The objects: tables that last, instances that die, alarms that come late, and what lies between them.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

use yard_common::{Millis, Refusal};
use yard_objects::arm;
use yard_objects::native::{MemoryBlobs, MemoryIndex, NativeSql};
use yard_objects::{Board, Lane, Object, Registry, Repository};

use crate::clockwork::{Clockwork, Sender, gate};
use crate::god::God;
use crate::platform::{Bucket, Database, Network, Simulated};

/// The secret that signs tokens.
pub const SECRET: &str = "a secret of the simulation";

/// How bad the world is; per 1,000.
#[derive(Debug, Clone, Copy, Default)]
pub struct Weather {
    /// Messages that get lost, on their way or with the answer.
    pub lost: u64,
    /// Calls that arrive twice.
    pub twice: u64,
    /// Messages that take long.
    pub slow: u64,
    /// Events in which a statement fails.
    pub sql: u64,
}

/// What of an object lasts.
struct Durable {
    sql: Rc<NativeSql>,
    alarm: Cell<Option<Millis>>,
    ringing: Cell<bool>,
}

/// A live instance.
enum Host {
    Repository(Box<Repository<Simulated>>, Cell<Option<Millis>>),
    Lane(Box<Lane<Simulated>>, Cell<Option<Millis>>),
    Board(Box<Board<Rc<NativeSql>>>),
    Registry(Box<Registry<Rc<NativeSql>>>),
}

impl Host {
    fn object(&self) -> &dyn Object {
        match self {
            Self::Repository(host, _) => host.as_ref(),
            Self::Lane(host, _) => host.as_ref(),
            Self::Board(host) => host.as_ref(),
            Self::Registry(host) => host.as_ref(),
        }
    }
}

/// A message of a queue on its way.
pub struct Queued {
    /// The queue's binding.
    pub queue: String,
    /// The message.
    pub body: String,
    /// When it was sent.
    pub sent: Millis,
}

/// What takes a queue's messages: set once.
type Consumer = Box<dyn Fn(&Rc<World>, Queued)>;

/// Everything there is.
pub struct World {
    /// Tasks, time, chance.
    pub clock: Clockwork,
    /// What the bucket holds.
    pub blobs: MemoryBlobs,
    /// What the index holds.
    pub index: MemoryIndex,
    /// The all-seeing eye.
    pub god: RefCell<God>,
    /// How bad it is now.
    pub weather: Cell<Weather>,
    /// Faults so far.
    pub faults: Cell<u64>,
    durable: RefCell<BTreeMap<String, Rc<Durable>>>,
    live: RefCell<BTreeMap<String, Rc<Host>>>,
    consumer: RefCell<Option<Consumer>>,
    /// Words of what happened, newest last, where they are kept.
    pub journal: RefCell<Option<Vec<String>>>,
}

/// An alarm's next time after a fault, as the platform's first retry.
const ALARM_RETRY_MS: u64 = 2_000;

/// Falls when an alarm's work ends, however it ends.
struct Ringing {
    world: Rc<World>,
    name: String,
    done: Cell<bool>,
}

impl Drop for Ringing {
    fn drop(&mut self) {
        let durable = self.world.durable(&self.name);
        durable.ringing.set(false);
        let again = (!self.done.get()).then(|| self.world.clock.now().plus(ALARM_RETRY_MS));
        if let Some(at) = durable.alarm.get().or(again) {
            World::set_alarm(&self.world, &self.name, at);
        }
    }
}

impl World {
    /// A world in fair weather.
    ///
    /// # Panics
    /// When SQLite has no memory.
    #[must_use]
    pub fn new(seed: u64) -> Rc<Self> {
        Rc::new(Self {
            clock: Clockwork::new(Millis(1_700_000_000_000), seed),
            blobs: MemoryBlobs::default(),
            index: MemoryIndex::new().expect("an index in memory"),
            god: RefCell::default(),
            weather: Cell::default(),
            faults: Cell::new(0),
            durable: RefCell::default(),
            live: RefCell::default(),
            consumer: RefCell::default(),
            journal: RefCell::default(),
        })
    }

    /// Notes what happened, where that is kept.
    pub fn note(&self, what: impl FnOnce() -> String) {
        if let Some(journal) = self.journal.borrow_mut().as_mut() {
            journal.push(format!("{} {}", self.clock.now().0 - 1_700_000_000_000, what()));
        }
    }

    fn fault(&self) {
        self.faults.set(self.faults.get() + 1);
    }

    /// Lets a message travel; false when it is lost.
    pub async fn arrives(&self) -> bool {
        let weather = self.weather.get();
        let ms = if self.clock.chance(weather.slow) {
            self.fault();
            self.clock.below(60_000)
        } else {
            1 + self.clock.below(10)
        };
        self.clock.sleep(ms).await;
        let lost = self.clock.chance(weather.lost);
        if lost {
            self.fault();
        }
        !lost
    }

    fn durable(&self, name: &str) -> Rc<Durable> {
        let mut all = self.durable.borrow_mut();
        let made = all.entry(name.to_owned()).or_insert_with(|| {
            let sql = Rc::new(NativeSql::new().expect("tables in memory"));
            Rc::new(Durable { sql, alarm: Cell::new(None), ringing: Cell::new(false) })
        });
        Rc::clone(made)
    }

    /// An object's tables.
    #[must_use]
    pub fn tables(&self, name: &str) -> Rc<NativeSql> {
        Rc::clone(&self.durable(name).sql)
    }

    fn host(world: &Rc<Self>, name: &str) -> Rc<Host> {
        if let Some(host) = world.live.borrow().get(name) {
            return Rc::clone(host);
        }
        let sql = Rc::clone(&world.durable(name).sql);
        let (network, bucket) = (Network(Rc::clone(world)), Bucket(Rc::clone(world)));
        let host = match yard_objects::call::binding_of(name) {
            "REPOSITORY" => {
                let index = Database(Rc::clone(world));
                let host = Repository::new(sql, bucket, index, network, SECRET.into());
                Host::Repository(Box::new(host), Cell::new(None))
            }
            "LANE" => {
                let index = Database(Rc::clone(world));
                Host::Lane(Box::new(Lane::new(sql, bucket, index, network)), Cell::new(None))
            }
            "BOARD" => Host::Board(Box::new(Board::new(sql))),
            _ => Host::Registry(Box::new(Registry::new(sql))),
        };
        let host = Rc::new(host);
        world.live.borrow_mut().insert(name.to_owned(), Rc::clone(&host));
        host
    }

    /// Calls an object and waits for its answer.
    ///
    /// # Errors
    /// The object's refusal; [`Refusal::Internal`] when request or answer are lost.
    pub async fn call(
        world: &Rc<Self>,
        name: &str,
        method: &'static str,
        body: Vec<u8>,
    ) -> Result<Vec<u8>, Refusal> {
        let lost = || Refusal::Internal { during: format!("calling {name}") };
        if !world.arrives().await {
            return Err(lost());
        }
        if world.clock.chance(world.weather.get().twice) {
            world.fault();
            let (sender, _) = gate(&world.clock);
            Self::handle(world, name, method, body.clone(), sender);
        }
        let (sender, receiver) = gate(&world.clock);
        Self::handle(world, name, method, body, sender);
        let answer = receiver.await.ok_or_else(lost)?;
        if !world.arrives().await {
            return Err(lost());
        }
        answer
    }

    fn handle(
        world: &Rc<Self>,
        name: &str,
        method: &'static str,
        body: Vec<u8>,
        sender: Sender<Result<Vec<u8>, Refusal>>,
    ) {
        let (inner, object) = (Rc::clone(world), name.to_owned());
        world.clock.spawn(name, async move {
            let host = Self::host(&inner, &object);
            inner.spoil(&object);
            let answer = host.object().handle(method, &body, inner.clock.now()).await;
            inner.note(|| match &answer {
                Ok(_) => format!("{object} {method}"),
                Err(refusal) => format!("{object} {method}: {refusal}"),
            });
            sender.send(answer);
            Self::arm(&inner, &object, &host);
        });
    }

    /// Lets one of the next statements fail, now and then.
    fn spoil(&self, name: &str) {
        if self.clock.chance(self.weather.get().sql) {
            self.fault();
            self.durable(name).sql.fail_after(1 + self.clock.below(12));
        }
    }

    /// As the classes in `yard_objects::worker` arm after an event.
    fn arm(world: &Rc<Self>, name: &str, host: &Host) {
        let now = world.clock.now();
        match host {
            Host::Lane(host, armed) => {
                if host.is_driving() {
                    return;
                }
                let Ok(Some(due)) = host.due(now) else { return };
                if arm::lane(armed.get(), due, now) {
                    armed.set(Some(due));
                    Self::set_alarm(world, name, due);
                }
            }
            Host::Repository(host, armed) => {
                if arm::repository_rests(armed.get(), now) {
                    return;
                }
                let Ok(Some(due)) = host.due() else { return };
                let wanted = now.plus(due);
                if arm::repository(world.durable(name).alarm.get(), wanted, now) {
                    Self::set_alarm(world, name, wanted);
                }
                armed.set(arm::remembered(now, due));
            }
            Host::Board(_) | Host::Registry(_) => {}
        }
    }

    fn set_alarm(world: &Rc<Self>, name: &str, at: Millis) {
        world.durable(name).alarm.set(Some(at));
        let (inner, name) = (Rc::clone(world), name.to_owned());
        world.clock.spawn("platform", async move {
            inner.clock.sleep(at.since(inner.clock.now())).await;
            let durable = inner.durable(&name);
            if durable.alarm.get() == Some(at) && !durable.ringing.get() {
                durable.alarm.set(None);
                durable.ringing.set(true);
                Self::ring(&inner, &name);
            }
        });
    }

    /// As the classes in `yard_objects::worker` answer an alarm.
    fn ring(world: &Rc<Self>, name: &str) {
        let (inner, object) = (Rc::clone(world), name.to_owned());
        let ringing = Ringing { world: Rc::clone(world), name: name.to_owned(), done: Cell::new(false) };
        world.clock.spawn(name, async move {
            let ringing = ringing;
            let host = Self::host(&inner, &object);
            inner.spoil(&object);
            let now = || inner.clock.now();
            let durable = inner.durable(&object);
            match host.as_ref() {
                Host::Lane(lane, armed) => {
                    armed.set(None);
                    durable.alarm.set(Some(now().plus(arm::LANE_REARM_MS)));
                    let due = match lane.alarm(&now).await {
                        Ok(due) => due,
                        Err(_) => Some(now().plus(arm::LANE_AGAIN_MS)),
                    };
                    armed.set(due);
                    durable.alarm.set(due);
                }
                Host::Repository(repository, armed) => {
                    durable.alarm.set(Some(now().plus(arm::REPOSITORY_REARM_MS)));
                    armed.set(None);
                    let due = match repository.alarm(now()).await {
                        Ok(due) => due,
                        Err(_) => Some(arm::REPOSITORY_REARM_MS),
                    };
                    durable.alarm.set(due.map(|due| now().plus(due)));
                    armed.set(due.and_then(|due| arm::remembered(now(), due)));
                }
                Host::Board(_) | Host::Registry(_) => {}
            }
            ringing.done.set(true);
        });
    }

    /// Ends the instances whose names fit, with all that they were about to do. What follows starts anew.
    pub fn kill(&self, fits: impl Fn(&str) -> bool) {
        self.fault();
        let dead: Vec<Rc<Host>> = {
            let mut live = self.live.borrow_mut();
            let names: Vec<String> = live.keys().filter(|name| fits(name)).cloned().collect();
            names.iter().filter_map(|name| live.remove(name)).collect()
        };
        self.clock.kill(&fits);
        drop(dead);
    }

    /// Sets who takes messages of queues.
    pub fn consume(&self, consumer: impl Fn(&Rc<Self>, Queued) + 'static) {
        *self.consumer.borrow_mut() = Some(Box::new(consumer));
    }

    /// Puts messages into a queue: each is delivered, late or twice or, in bad weather, never.
    pub fn enqueue(world: &Rc<Self>, queue: &str, messages: Vec<String>) {
        let sent = world.clock.now();
        for body in messages {
            let weather = world.weather.get();
            if world.clock.chance(weather.lost) {
                world.fault();
                continue;
            }
            let copies = 1 + u64::from(world.clock.chance(weather.twice));
            for _ in 0..copies {
                let message = Queued { queue: queue.to_owned(), body: body.clone(), sent };
                let wait = world.clock.below(2_000);
                Self::deliver_after(world, message, wait);
            }
        }
    }

    /// Delivers a message after a while.
    pub fn deliver_after(world: &Rc<Self>, message: Queued, wait_ms: u64) {
        let inner = Rc::clone(world);
        world.clock.spawn("platform", async move {
            inner.clock.sleep(wait_ms).await;
            if let Some(consumer) = inner.consumer.borrow().as_ref() {
                consumer(&inner, message);
            }
        });
    }

    /// Ends everything, so that nothing holds anything any more.
    pub fn end(&self) {
        *self.consumer.borrow_mut() = None;
        self.live.borrow_mut().clear();
        self.clock.kill(|_| true);
        self.live.borrow_mut().clear();
    }
}
