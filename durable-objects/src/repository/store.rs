//! Writes a block: what cannot mislead first, then the facts by one statement, then their folds, and
//! the row that says so last.

use serde::Serialize;

use super::fact_text::kind_of;
use super::ledger::{Pending, SqlLedger, claim_json, fork_text, parents_text, path_text, step_json};
use super::tables::{Scalars, StateRow, changes_of};
use crate::point;
use crate::sql::{INT_MAX, Sql, SqlFault, VALUE_BYTES_MAX, Value, each_json};

/// Writes all that the ledger gathered, in one synchronous block; answers with the scalars after it.
///
/// `None`: the facts are written, their folds not wholly. The object is to be read anew, which folds
/// them again.
///
/// # Errors
/// [`SqlFault`] when nothing that decides was written.
pub(crate) fn save<S: Sql>(ledger: SqlLedger<'_, S>) -> Result<Option<Scalars>, SqlFault> {
    ledger.check()?;
    let SqlLedger { sql, scalars, pending, .. } = ledger;
    point("repository.before-save");
    commits(sql, &pending)?;
    facts(sql, &pending)?;
    point("repository.after-fact");
    let mut scalars = scalars;
    let folded = folds(sql, &pending, scalars.place).and_then(|place| {
        scalars.place = place;
        scalars.write(sql)
    });
    point("repository.after-fold");
    match folded {
        Ok(()) => Ok(Some(scalars)),
        Err(fault) if pending.facts.is_empty() => Err(fault),
        Err(fault) => {
            crate::points::log(&format!("a fold was cut off: {fault}"));
            Ok(None)
        }
    }
}

fn commits(sql: &impl Sql, pending: &Pending) -> Result<(), SqlFault> {
    let rows = pending.commit_order.iter().filter_map(|id| {
        let new = pending.commits.get(id)?;
        let parents = parents_text(&new.info.parents);
        // Git takes any date below 2^63; a row that cannot be read back would close the repository.
        let seconds = new.seconds.min(INT_MAX.unsigned_abs());
        Some((id, new.info.tree, parents, seconds, new.info.generation))
    });
    each_json(
        sql,
        "INSERT OR IGNORE INTO commits (id, tree, parents, seconds, generation)
         SELECT json_extract(value, '$[0]'), json_extract(value, '$[1]'), json_extract(value, '$[2]'),
                json_extract(value, '$[3]'), json_extract(value, '$[4]') FROM json_each(?1) ORDER BY key",
        rows,
        &[],
    )?;
    Ok(())
}

/// All facts of the block by one statement: several rows as parameters, or as one JSON array.
fn facts(sql: &impl Sql, pending: &Pending) -> Result<(), SqlFault> {
    let mut texts = Vec::with_capacity(pending.facts.len());
    for (no, at, fact) in &pending.facts {
        let json = serde_json::to_string(&*fact.stored()).map_err(|fault| SqlFault(fault.to_string()))?;
        if json.len() > VALUE_BYTES_MAX {
            return Err(SqlFault(format!("a fact of {} bytes", json.len())));
        }
        texts.push((*no, *at, json));
    }
    // 24 facts of four parameters are below the 100 of the platform; a batch of more goes as text.
    for bundle in texts.chunks(24) {
        let marks = vec!["(?, ?, ?, ?)"; bundle.len()].join(", ");
        let params: Vec<Value> = bundle
            .iter()
            .flat_map(|(no, at, json)| {
                [no.0.into(), at.0.into(), kind_of(json).into(), Value::Text(json.clone())]
            })
            .collect();
        sql.run(&format!("INSERT INTO facts (no, at, kind, json) VALUES {marks}"), &params)?;
    }
    Ok(())
}

fn bulk<T: Serialize>(
    sql: &impl Sql,
    statement: &str,
    rows: impl IntoIterator<Item = T>,
) -> Result<(), SqlFault> {
    each_json(sql, statement, rows, &[]).map(|_| ())
}

/// The folds; answers with the last place given in the catalogue.
fn folds(sql: &impl Sql, pending: &Pending, place: u64) -> Result<u64, SqlFault> {
    rows(sql, pending)?;
    states(sql, pending)?;
    main(sql, pending)?;
    refs(sql, pending)?;
    rest(sql, pending)?;
    packs(sql, pending, place)
}

fn rows(sql: &impl Sql, pending: &Pending) -> Result<(), SqlFault> {
    let of_facts = pending.facts.iter().flat_map(|(no, _, fact)| {
        changes_of(fact).into_iter().map(move |change| (change, no)).collect::<Vec<_>>()
    });
    bulk(
        sql,
        "INSERT OR IGNORE INTO fact_changes (change, no)
         SELECT json_extract(value, '$[0]'), json_extract(value, '$[1]') FROM json_each(?1)",
        of_facts,
    )?;
    let rows = || pending.rows.values();
    bulk(
        sql,
        "INSERT OR REPLACE INTO submissions (seq, change, version, fact)
         SELECT json_extract(value, '$[0]'), json_extract(value, '$[1]'), json_extract(value, '$[2]'),
                json_extract(value, '$[3]') FROM json_each(?1)",
        rows().map(|(row, no)| (row.seq, &row.change, row.version, no)),
    )?;
    let commits =
        rows().flat_map(|(row, _)| row.commits.iter().map(move |id| (id, &row.change, row.version)));
    bulk(
        sql,
        "INSERT OR IGNORE INTO version_commits (id, change, version) SELECT json_extract(value, '$[0]'),
           json_extract(value, '$[1]'), json_extract(value, '$[2]') FROM json_each(?1)",
        commits,
    )?;
    bulk(
        sql,
        "DELETE FROM paths WHERE change IN (SELECT value FROM json_each(?1))",
        rows().map(|(row, _)| &row.change),
    )?;
    // Of two versions in one block the newest one's paths count.
    let newest = pending
        .rows
        .iter()
        .filter(|((change, version), _)| !pending.rows.contains_key(&(change.clone(), version.next())));
    let paths = newest.flat_map(|(_, (row, _))| {
        let fork = fork_text(row.fork.as_ref());
        row.edits.iter().map(move |edit| (fork, path_text(&edit.path), &row.change))
    });
    bulk(
        sql,
        "INSERT OR IGNORE INTO paths (fork, path, change) SELECT json_extract(value, '$[0]'),
           json_extract(value, '$[1]'), json_extract(value, '$[2]') FROM json_each(?1)",
        paths,
    )
}

fn states(sql: &impl Sql, pending: &Pending) -> Result<(), SqlFault> {
    let states = pending.states.iter().map(|(change, (state, upto))| {
        let text = serde_json::to_string(&StateRow::from(state)).unwrap_or_default();
        (change, text, upto)
    });
    bulk(
        sql,
        "INSERT OR REPLACE INTO changes (change, state, upto) SELECT json_extract(value, '$[0]'),
           json_extract(value, '$[1]'), json_extract(value, '$[2]') FROM json_each(?1)",
        states,
    )?;
    bulk(
        sql,
        "INSERT OR REPLACE INTO landings (id, change, version) SELECT json_extract(value, '$[0]'),
           json_extract(value, '$[1]'), json_extract(value, '$[2]') FROM json_each(?1)",
        pending.landings.values().map(|standing| (standing.commit, &standing.change, standing.version)),
    )?;
    contents(sql, pending)
}

/// What was taken back needs no contents. What has landed has them in the landed pack, and its head can be
/// built for a while; what main's rewriting opens again keeps them.
fn contents(sql: &impl Sql, pending: &Pending) -> Result<(), SqlFault> {
    let states = || pending.states.iter().map(|(change, (state, _))| (change, state));
    let closed = states().filter(|(_, state)| state.closed.is_some()).map(|(change, _)| change);
    let closed: Vec<_> = closed.collect();
    for table in ["contents", "heads"] {
        let statement = format!("DELETE FROM {table} WHERE change IN (SELECT value FROM json_each(?1))");
        bulk(sql, &statement, &closed)?;
    }
    let at = pending.facts.last().map_or(0, |(_, at, _)| at.0);
    let landed: Vec<_> =
        states().filter(|(_, state)| state.landed.is_some()).map(|(change, _)| change).collect();
    let ended = "UPDATE heads SET ended = ?2 WHERE change IN (SELECT value FROM json_each(?1))";
    each_json(sql, ended, &landed, &[at.into()])?;
    bulk(
        sql,
        "DELETE FROM contents WHERE change IN (SELECT value FROM json_each(?1))
           AND NOT EXISTS (SELECT 1 FROM heads AS h WHERE h.change = contents.change)",
        &landed,
    )?;
    let open = states().filter(|(_, state)| state.rewritten.is_some()).map(|(change, _)| change);
    bulk(sql, "UPDATE heads SET ended = NULL WHERE change IN (SELECT value FROM json_each(?1))", open)
}

/// Marks the tips and all their ancestors as once on main.
fn main(sql: &impl Sql, pending: &Pending) -> Result<(), SqlFault> {
    for tip in &pending.tips {
        sql.run(
            "WITH RECURSIVE k (n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM k WHERE n < 63),
             up (id) AS (
               SELECT id FROM commits WHERE id = ?1 AND ever = 0
               UNION
               SELECT c.id FROM up JOIN commits AS u ON u.id = up.id JOIN k ON k.n * 40 < length(u.parents)
                 JOIN commits AS c ON c.id = substr(u.parents, k.n * 40 + 1, 40) WHERE c.ever = 0)
             UPDATE commits SET ever = 1 WHERE id IN (SELECT id FROM up)",
            &[tip.into()],
        )?;
    }
    bulk(
        sql,
        "INSERT OR REPLACE INTO steps (tip, json) SELECT json_extract(value, '$[0]'),
           json_extract(value, '$[1]') FROM json_each(?1)",
        pending.steps.iter().map(|(tip, step)| (tip, step_json(step))),
    )
}

fn refs(sql: &impl Sql, pending: &Pending) -> Result<(), SqlFault> {
    let set = pending
        .refs
        .iter()
        .filter_map(|(name, target)| target.map(|target| (name, target, pending.peeled.get(name))));
    bulk(
        sql,
        "INSERT OR REPLACE INTO refs (name, target, peeled) SELECT json_extract(value, '$[0]'),
           json_extract(value, '$[1]'), json_extract(value, '$[2]') FROM json_each(?1)",
        set,
    )?;
    bulk(
        sql,
        "DELETE FROM refs WHERE name IN (SELECT value FROM json_each(?1))",
        pending.refs.iter().filter(|(_, target)| target.is_none()).map(|(name, _)| name),
    )
}

fn rest(sql: &impl Sql, pending: &Pending) -> Result<(), SqlFault> {
    bulk(
        sql,
        "INSERT OR REPLACE INTO claims (fence, until, ended, json) SELECT json_extract(value, '$[0]'),
           json_extract(value, '$[1]'), json_extract(value, '$[2]'), json_extract(value, '$[3]')
         FROM json_each(?1)",
        pending
            .claims
            .iter()
            .map(|(fence, (claim, ended))| (fence, claim.until, u8::from(*ended), claim_json(claim))),
    )?;
    bulk(
        sql,
        "INSERT OR REPLACE INTO lanes (lane, epoch) SELECT json_extract(value, '$[0]'),
           json_extract(value, '$[1]') FROM json_each(?1)",
        &pending.lanes,
    )?;
    bulk(
        sql,
        "INSERT OR IGNORE INTO answers (kind, key, json) SELECT json_extract(value, '$[0]'),
           json_extract(value, '$[1]'), json_extract(value, '$[2]') FROM json_each(?1)",
        pending.answers.iter().map(|((kind, key), json)| (kind, key, json)),
    )
}

/// Packs that belong to the catalogue from now on get the next places.
fn packs(sql: &impl Sql, pending: &Pending, place: u64) -> Result<u64, SqlFault> {
    let mut place = place;
    for pack in &pending.live_packs {
        sql.run(
            "UPDATE packs SET state = 'live', place = ?2, attempt = NULL WHERE key = ?1
               AND state IN ('staged', 'candidate')",
            &[pack.key.as_str().into(), (place + 1).into()],
        )?;
        place += 1;
    }
    Ok(place)
}
