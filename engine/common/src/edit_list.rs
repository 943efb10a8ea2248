//! Lists of edits that are too long for a fact: values of the bucket, named by their own digest.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::bytes::json_len;
use crate::id::hex;
use crate::limits::{EDIT_LIST_BYTES_MAX, EDIT_LIST_OBJECT_BYTES_MAX};
use crate::refusal::Refusal;

/// What a fact holds of such a list.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct EditList {
    /// SHA-256 of the value (the list as JSON), in hex.
    pub sha256: String,
    /// Its length in bytes.
    pub bytes: u64,
    /// How many edits are in it.
    pub count: u64,
}

/// What a fact holds of a list and the value that it names; `None` where the fact holds the list itself.
pub type Outside = Option<(EditList, Vec<u8>)>;

impl EditList {
    /// The value of a list that is longer than a fact may hold, and what the fact holds of it.
    ///
    /// # Errors
    /// [`Refusal::TooLarge`] above [`EDIT_LIST_OBJECT_BYTES_MAX`].
    pub fn of<T: Serialize>(edits: &[T]) -> Result<Outside, Refusal> {
        Ok(Self::measured(edits)?.1)
    }

    /// How many bytes the list has as JSON, and its value where a fact may not hold that many.
    ///
    /// # Errors
    /// As [`EditList::of`].
    pub fn measured<T: Serialize>(edits: &[T]) -> Result<(usize, Outside), Refusal> {
        let fault = || Refusal::Internal { during: "writing a list of edits".into() };
        let bytes = json_len(&edits).ok_or_else(fault)?;
        if bytes <= EDIT_LIST_BYTES_MAX {
            return Ok((bytes, None));
        }
        if bytes > EDIT_LIST_OBJECT_BYTES_MAX {
            let what = format!("the list of its {} paths (split the change)", edits.len());
            let (size, limit) = (bytes as u64, EDIT_LIST_OBJECT_BYTES_MAX as u64);
            return Err(Refusal::TooLarge { what, size, limit });
        }
        let value = serde_json::to_vec(edits).map_err(|_| fault())?;
        let sha256 = hex(&Sha256::digest(&value));
        let list = Self { sha256, bytes: value.len() as u64, count: edits.len() as u64 };
        Ok((bytes, Some((list, value))))
    }

    /// The edits in a value of the bucket, if it is the one that the fact means.
    ///
    /// # Errors
    /// [`Refusal::Internal`] when it is another one or none.
    pub fn read<T: DeserializeOwned>(&self, value: Option<&[u8]>) -> Result<Vec<T>, Refusal> {
        let lost = || Refusal::Internal { during: format!("reading the list of edits {}", self.sha256) };
        let value = value.filter(|value| hex(&Sha256::digest(value)) == self.sha256).ok_or_else(lost)?;
        let edits: Vec<T> = serde_json::from_slice(value).map_err(|_| lost())?;
        if edits.len() as u64 == self.count { Ok(edits) } else { Err(lost()) }
    }

    /// Are these all of its edits? A list that was not read yet must not pass for an empty one.
    #[must_use]
    pub fn is_whole(list: Option<&Self>, edits: usize) -> bool {
        list.is_none_or(|list| list.count == edits as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_list_stays_in_the_fact_and_a_long_one_is_bound_by_its_digest() {
        let short: Vec<String> = vec!["a".into()];
        assert_eq!(EditList::measured(&short).unwrap(), (5, None));
        let long: Vec<String> = (0..30_000).map(|n| format!("path/{n}")).collect();
        let (list, value) = EditList::of(&long).unwrap().unwrap();
        assert_eq!(list.read::<String>(Some(&value)).unwrap(), long);
        let mut other = value.clone();
        other[3] ^= 1;
        for bad in [None, Some(other.as_slice()), Some(&value[..value.len() - 1])] {
            assert!(list.read::<String>(bad).is_err());
        }
        assert!(EditList::is_whole(Some(&list), 30_000) && EditList::is_whole(None, 0));
        assert!(!EditList::is_whole(Some(&list), 0));
        let huge: Vec<String> = (0..900_000).map(|n| format!("some/long/path/{n}")).collect();
        assert!(matches!(EditList::of(&huge), Err(Refusal::TooLarge { .. })));
    }
}
