//! A change's `.switchyard.toml`: one that cannot be read is refused before anything is stored.

use yard_common::config::Config;
use yard_common::policy::CONFIG_PATH;
use yard_common::submission::{Entry, Mode, RowEdit};
use yard_common::{ObjectId, Refusal};

/// The configuration that the edits bring; `None` when they leave it alone or delete it.
///
/// # Errors
/// [`Refusal::Invalid`] when it is no plain file.
pub fn brought(edits: &[RowEdit]) -> Result<Option<ObjectId>, Refusal> {
    let edit = edits.iter().find(|edit| edit.path.as_bytes() == CONFIG_PATH.as_bytes());
    match edit.and_then(|edit| edit.theirs) {
        None => Ok(None),
        Some(Entry { mode: Mode::File | Mode::Executable, id }) => Ok(Some(id)),
        Some(_) => Err(Refusal::Invalid { why: format!("{CONFIG_PATH} must be a plain file") }),
    }
}

/// Can it be read?
///
/// # Errors
/// [`Refusal`] with the line, the key and what is expected.
pub fn check(bytes: &[u8]) -> Result<(), Refusal> {
    Config::parse(bytes).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;
    use yard_common::RepoPath;

    #[test]
    fn what_the_edits_bring_is_found_and_read() {
        let edit = |path: &str, mode| RowEdit {
            path: RepoPath::new(path).unwrap(),
            base: None,
            theirs: Some(Entry { mode, id: ObjectId([1; 20]) }),
        };
        assert_eq!(brought(&[edit("a", Mode::File)]), Ok(None));
        assert_eq!(brought(&[edit(CONFIG_PATH, Mode::File)]), Ok(Some(ObjectId([1; 20]))));
        assert!(brought(&[edit(CONFIG_PATH, Mode::Symlink)]).is_err());
        assert_eq!(check(b"[lane]\ntrain_max = 5\n"), Ok(()));
        let said = check(b"[checks]\ncomand = \"x\"\n").unwrap_err().to_string();
        assert!(said.contains("line 2") && said.contains("comand"), "{said}");
    }
}
