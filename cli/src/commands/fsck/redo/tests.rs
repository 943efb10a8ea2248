use super::*;
use yard_common::intent::{Intent, Signature};
use yard_common::submission::{Base, RowEdit};
use yard_common::{ChangeId, RuleName, Version};

/// A repository with real objects.
struct World {
    dir: tempfile::TempDir,
}

impl World {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        git::run(dir.path(), None, &["init", "-q"]).unwrap();
        for (key, value) in [("user.name", "n"), ("user.email", "e@x")] {
            git::run(dir.path(), None, &["config", key, value]).unwrap();
        }
        Self { dir }
    }

    fn git(&self, args: &[&str]) -> String {
        git::run(self.dir.path(), None, args).unwrap()
    }

    fn commit(&self, files: &[(&str, &str)]) -> ObjectId {
        for (path, text) in files {
            let path = self.dir.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        self.git(&["add", "-A"]);
        self.git(&["commit", "-q", "--allow-empty", "-m", "c"]);
        self.git(&["rev-parse", "HEAD"]).parse().unwrap()
    }

    fn blob(&self, text: &str) -> Option<Entry> {
        let args = ["hash-object", "-w", "--stdin"];
        let id = git::run_bytes(self.dir.path(), None, &args, text.as_bytes()).unwrap();
        let id = String::from_utf8(id).unwrap().trim().parse().unwrap();
        Some(Entry { mode: Mode::File, id })
    }

    fn tree(&self, commit: ObjectId) -> ObjectId {
        self.git(&["rev-parse", &format!("{commit}^{{tree}}")]).parse().unwrap()
    }

    /// An index and a text that a change and main both touched: the landed change and its row.
    fn landed(&self, index: &str) -> (LandChange, Submission) {
        let start = [("d/index", "b\n"), ("text", "1\n2\n3\n4\n5\n6\n7\n8\n9\n")];
        let base = self.commit(&start);
        let ours = [("d/index", "a\nb\n"), ("text", "one\n2\n3\n4\n5\n6\n7\n8\n9\n")];
        self.commit(&ours);
        let result = [("d/index", index), ("text", "one\n2\n3\n4\n5\n6\n7\n8\nnine\n")];
        let commit = self.commit(&result);
        let theirs = ["b\nc\n", "1\n2\n3\n4\n5\n6\n7\n8\nnine\n"];
        let hows = [How::Rule(RuleName::new("sorted-lines").unwrap()), How::Merge];
        let mut edits = Vec::new();
        for (n, how) in hows.into_iter().enumerate() {
            edits.push(Edit {
                path: RepoPath::new(start[n].0).unwrap(),
                from: None,
                base: self.blob(start[n].1),
                ours: self.blob(ours[n].1),
                theirs: self.blob(theirs[n]),
                result: self.blob(result[n].1),
                how,
            });
        }
        let row = edits.iter().map(|edit| RowEdit {
            path: edit.path.clone(),
            base: edit.base,
            theirs: edit.theirs,
        });
        let row = row.collect::<Vec<_>>();
        let change = ChangeId::new("Iabcdefgh").unwrap();
        let base = Base { commits: vec![base], tree: self.tree(base) };
        let row = submission(&change, commit, &base, &row);
        (LandChange { change, version: Version(1), commit, edits, list: None }, row)
    }

    fn judge(&self, landed: &LandChange, row: &Submission) -> (String, bool) {
        judge(self.dir.path(), landed, row).unwrap()
    }
}

fn submission(change: &ChangeId, head: ObjectId, base: &Base, edits: &[RowEdit]) -> Submission {
    // By its JSON, for fields are only ever added, with a default.
    let author = Signature { name: "n".into(), email: "e@x".into(), seconds: 0, offset_minutes: 0 };
    let row = serde_json::json!({
        "seq": 1, "change": change, "version": 1, "fork": null, "author": author, "head": head,
        "head_tree": ObjectId::ZERO, "commits": [head], "base": base, "edits": edits, "fences": {},
        "reverts": [], "lane": "main", "owner_epoch": 0, "waits_for": [], "key": "k", "at": 0, "via": "git",
        "intent": Intent::default(), "warnings": [],
    });
    serde_json::from_value(row).unwrap()
}

#[test]
fn a_landing_by_rule_and_by_merge_is_redone() {
    let world = World::new();
    let (landed, row) = world.landed("a\nb\nc\n");
    assert_eq!(world.judge(&landed, &row), ("rule".into(), false));
}

#[test]
fn what_a_rule_does_not_make_is_a_fault() {
    let world = World::new();
    let (landed, row) = world.landed("a\nc\n");
    let (said, fault) = world.judge(&landed, &row);
    assert!(fault && said.contains("rule sorted-lines: it makes something else"), "{said}");
}

#[test]
fn a_submitted_file_that_is_not_kept_is_told_and_no_fault() {
    let world = World::new();
    let (mut landed, row) = world.landed("a\nb\nc\n");
    landed.edits[0].theirs = Some(Entry { mode: Mode::File, id: ObjectId([7; 20]) });
    let (said, fault) = world.judge(&landed, &row);
    assert!(!fault && said.starts_with("unknown: d/index"), "{said}");
}

#[test]
fn a_tree_that_cannot_be_fetched_is_a_fault_of_its_landing() {
    let world = World::new();
    let (landed, row) = world.landed("a\nb\nc\n");
    let tree = world.git(&["rev-parse", &format!("{}:d", landed.commit)]);
    let object = world.dir.path().join(".git/objects").join(&tree[..2]).join(&tree[2..]);
    std::fs::remove_file(object).unwrap();
    let (said, fault) = world.judge(&landed, &row);
    assert!(fault && said.starts_with("not all of its trees can be fetched"), "{said}");
}

#[test]
fn a_file_that_cannot_be_fetched_is_a_fault_of_its_landing() {
    let world = World::new();
    let (landed, row) = world.landed("a\nb\nc\n");
    let id = landed.edits[1].result.unwrap().id.to_string();
    std::fs::remove_file(world.dir.path().join(".git/objects").join(&id[..2]).join(&id[2..])).unwrap();
    assert_eq!(world.judge(&landed, &row), ("text: what it brought cannot be fetched".into(), true));
}
