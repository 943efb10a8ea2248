//! The Board host: a bounded log of events with cursors; a repeat is known by source and number.

use std::cell::Cell;

use yard_common::{Millis, Refusal};
use yard_wire::board as wire;

use crate::call::{LocalFuture, Object, no_method, reply, request};
use crate::sql::{Sql, SqlFault, each_json, migrate};

/// Events that are kept: at 300 bytes each 30 MB, of the object's 10 GB.
pub const EVENTS_KEPT: u64 = 100_000;
/// Events in one reply.
pub const EVENTS_MAX: u64 = 1000;

const FIRST: &[&str] = &[
    "CREATE TABLE IF NOT EXISTS events (cursor INTEGER PRIMARY KEY AUTOINCREMENT, json TEXT NOT NULL)",
    "CREATE TABLE IF NOT EXISTS sources (source TEXT PRIMARY KEY, number INTEGER NOT NULL) WITHOUT ROWID",
];

/// The events of one repository.
pub struct Board<S: Sql> {
    sql: S,
    ready: Cell<bool>,
}

impl<S: Sql> Board<S> {
    /// The host over its tables; reads nothing yet.
    pub fn new(sql: S) -> Self {
        Self { sql, ready: Cell::new(false) }
    }

    fn prepare(&self) -> Result<(), Refusal> {
        if !self.ready.get() {
            migrate(&self.sql, "board", &[FIRST])?;
            self.ready.set(true);
        }
        Ok(())
    }

    /// Adds events that are newer than what their source has told; answers with those, and cursors.
    ///
    /// A source tells its events in the order of their numbers, so its largest number is all that
    /// tells a repeat from news.
    ///
    /// # Errors
    /// [`Refusal::Internal`] when the tables fail.
    pub fn publish(&self, asked: &wire::Publish) -> Result<Vec<(u64, wire::Event)>, Refusal> {
        self.prepare()?;
        crate::point("board.before-save");
        let before = self.newest()?;
        // One statement adds the news, so that no fault leaves an event without its number.
        each_json(
            &self.sql,
            "INSERT INTO events (json) SELECT e.value FROM json_each(?1) AS e
               LEFT JOIN sources AS s ON s.source = json_extract(e.value, '$.source')
             WHERE s.number IS NULL OR json_extract(e.value, '$.number') > s.number ORDER BY e.key",
            &asked.events,
            &[],
        )?;
        each_json(
            &self.sql,
            "INSERT INTO sources (source, number)
             SELECT json_extract(value, '$.source'), max(json_extract(value, '$.number'))
             FROM json_each(?1) WHERE true GROUP BY 1
             ON CONFLICT (source) DO UPDATE SET number = max(number, excluded.number)",
            &asked.events,
            &[],
        )?;
        let newest = self.newest()?;
        self.sql
            .run("DELETE FROM events WHERE cursor <= ?1", &[newest.saturating_sub(EVENTS_KEPT).into()])?;
        crate::point("board.saved");
        self.read(before, newest.saturating_sub(before))
    }

    fn newest(&self) -> Result<u64, Refusal> {
        let rows = self.sql.run("SELECT cursor FROM events ORDER BY cursor DESC LIMIT 1", &[])?;
        Ok(rows.first().map_or(Ok(0), |row| row.number(0))?)
    }

    fn read(&self, after: u64, limit: u64) -> Result<Vec<(u64, wire::Event)>, Refusal> {
        let rows = self.sql.run(
            "SELECT cursor, json FROM events WHERE cursor > ?1 ORDER BY cursor LIMIT ?2",
            &[after.into(), limit.into()],
        )?;
        let events = rows.iter().map(|row| Ok((row.number(0)?, row.json(1)?)));
        Ok(events.collect::<Result<Vec<_>, SqlFault>>()?)
    }

    /// Events after a cursor.
    ///
    /// # Errors
    /// [`Refusal::Internal`] when the tables fail.
    pub fn events(&self, asked: &wire::Events) -> Result<wire::EventsReply, Refusal> {
        self.prepare()?;
        let after = match asked.last {
            Some(last) => asked.after.max(self.newest()?.saturating_sub(last.min(EVENTS_MAX))),
            None => asked.after,
        };
        let events = self.read(after, EVENTS_MAX)?;
        let next = events.last().map_or(after, |(cursor, _)| *cursor);
        Ok(wire::EventsReply { events, next })
    }
}

impl<S: Sql> Object for Board<S> {
    fn handle<'a>(
        &'a self,
        name: &'a str,
        body: &'a [u8],
        _now: Millis,
    ) -> LocalFuture<'a, Result<Vec<u8>, Refusal>> {
        Box::pin(async move {
            match name {
                "publish" => {
                    self.publish(&request(body)?)?;
                    reply::<wire::Publish>(&())
                }
                "events" => reply::<wire::Events>(&self.events(&request(body)?)?),
                other => Err(no_method(other)),
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::native::NativeSql;

    fn event(source: &str, number: u64) -> wire::Event {
        wire::Event {
            source: source.into(),
            number,
            at: Millis(1),
            kind: "landed".into(),
            change: None,
            lane: None,
            text: format!("{source} {number}"),
        }
    }

    #[test]
    fn repeats_are_dropped_and_cursors_resume() {
        let board = Board::new(NativeSql::new().unwrap());
        let first = wire::Publish { events: vec![event("a", 1), event("a", 2), event("b", 1)] };
        assert_eq!(board.publish(&first).unwrap().len(), 3);
        assert!(board.publish(&first).unwrap().is_empty());
        let more = wire::Publish { events: vec![event("a", 2), event("a", 3)] };
        let news = board.publish(&more).unwrap();
        assert_eq!((news.len(), news[0].1.number), (1, 3));
        let page = board.events(&wire::Events { after: 0, last: None }).unwrap();
        assert_eq!((page.events.len(), page.next), (4, news[0].0));
        assert!(board.events(&wire::Events { after: page.next, last: None }).unwrap().events.is_empty());
    }

    #[test]
    fn who_looks_on_begins_with_the_newest() {
        let board = Board::new(NativeSql::new().unwrap());
        let ask = |after, last| board.events(&wire::Events { after, last: Some(last) }).unwrap();
        assert_eq!((ask(0, 2).events.len(), ask(0, 2).next), (0, 0));
        let all = wire::Publish { events: (1..=5).map(|number| event("a", number)).collect() };
        let newest = board.publish(&all).unwrap().last().unwrap().0;
        let told = ask(0, 2);
        let numbers: Vec<u64> = told.events.iter().map(|(_, event)| event.number).collect();
        assert_eq!((numbers, told.next), (vec![4, 5], newest));
        assert_eq!((ask(0, 0).events.len(), ask(0, 0).next), (0, newest));
        assert_eq!(ask(newest - 1, 4).events.len(), 1, "a cursor still counts");
    }
}
