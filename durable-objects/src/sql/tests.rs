use super::*;
use crate::native::NativeSql;

fn id(n: u8) -> ObjectId {
    ObjectId([n; 20])
}

#[test]
fn steps_of_a_migration_run_once_and_new_ones_are_added() {
    let sql = NativeSql::new().unwrap();
    let first: &[&str] = &["CREATE TABLE IF NOT EXISTS t (a)", "INSERT INTO t VALUES (1)"];
    let second: &[&str] = &["INSERT INTO t VALUES (2)"];
    migrate(&sql, "m", &[first]).unwrap();
    migrate(&sql, "m", &[first, second]).unwrap();
    migrate(&sql, "m", &[first, second]).unwrap();
    let rows = sql.run("SELECT a FROM t", &[]).unwrap();
    assert_eq!(rows.iter().map(|row| row.int(0).unwrap()).collect::<Vec<_>>(), [1, 2]);
}

#[test]
fn five_hundred_rows_are_one_statement() {
    let sql = NativeSql::new().unwrap();
    sql.run("CREATE TABLE t (a, b)", &[]).unwrap();
    let before = sql.statements();
    each_json(
        &sql,
        "INSERT INTO t SELECT json_extract(value, '$[0]'), ?2 FROM json_each(?1)",
        (0..500).map(|n| (n, "x")),
        &["y".into()],
    )
    .unwrap();
    assert_eq!(sql.statements() - before, 1);
    let rows = sql.run("SELECT count(*), sum(a), min(b) FROM t", &[]).unwrap();
    assert_eq!((rows[0].int(0).unwrap(), rows[0].int(1).unwrap()), (500, 499 * 250));
    assert_eq!(rows[0].text(2).unwrap(), "y");
}

#[test]
fn ids_are_looked_up_by_one_parameter() {
    let sql = NativeSql::new().unwrap();
    sql.run("CREATE TABLE t (id TEXT PRIMARY KEY)", &[]).unwrap();
    for n in 0..5 {
        sql.run("INSERT INTO t VALUES (?)", &[id(n).into()]).unwrap();
    }
    let wanted: Vec<_> = [1, 3, 9].map(id).to_vec();
    let rows = each_ids(&sql, "SELECT t.id FROM ids JOIN t USING (id) ORDER BY 1", &wanted, &[]).unwrap();
    assert_eq!(rows.iter().map(|row| row.id(0).unwrap()).collect::<Vec<_>>(), [id(1), id(3)]);
    assert!(each_ids(&sql, "SELECT id FROM ids", &[], &[]).unwrap().is_empty());
}

#[test]
fn numbers_that_f64_cannot_hold_are_refused() {
    let sql = NativeSql::new().unwrap();
    assert!(sql.run("SELECT ?", &[Value::Int(INT_MAX)]).is_ok());
    assert!(sql.run("SELECT ?", &[Value::Int(INT_MAX + 1)]).is_err());
}

#[test]
fn a_page_ends_before_its_bytes_are_too_many_and_has_one_row_at_least() {
    let rows: Vec<Row> = [(3, 60), (5, 50), (9, 40)]
        .iter()
        .map(|(number, bytes): &(i64, i64)| Row(vec![Value::Int(*number), Value::Int(*bytes)]))
        .collect();
    for (bytes_max, upto) in [(1000, 9), (110, 5), (109, 3), (1, 3)] {
        assert_eq!(page_end(&rows, 2, bytes_max).unwrap(), upto);
    }
    assert_eq!(page_end(&[], 2, 10).unwrap(), 2);
}
