//! The refs of one repository or fork as a reader sees them.

use yard_common::{ObjectId, RefName};

/// Refs below this are served only to who asks for them by name.
pub const HIDDEN_PREFIX: &str = "refs/candidates/";

/// One ref.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RefTip {
    /// Its full name.
    pub name: RefName,
    /// What it points at.
    pub id: ObjectId,
    /// What an annotated tag stands for in the end; `None` when `id` is no tag.
    pub peeled: Option<ObjectId>,
}

impl RefTip {
    /// Is this ref left out of every listing that does not name it?
    #[must_use]
    pub fn is_hidden(&self) -> bool {
        self.name.as_str().starts_with(HIDDEN_PREFIX)
    }
}

/// All refs in name order, and the branch that HEAD names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RefView {
    tips: Vec<RefTip>,
    head: RefName,
}

impl RefView {
    /// A view of these refs; `head` is the branch that HEAD names, which need not exist yet.
    ///
    /// A ref called HEAD is dropped: HEAD is always symbolic here.
    #[must_use]
    pub fn new(mut tips: Vec<RefTip>, head: RefName) -> Self {
        tips.retain(|tip| tip.name.as_str() != "HEAD");
        tips.sort_by(|a, b| a.name.cmp(&b.name));
        tips.dedup_by(|a, b| a.name == b.name);
        Self { tips, head }
    }

    /// The refs in name order.
    #[must_use]
    pub fn tips(&self) -> &[RefTip] {
        &self.tips
    }

    /// The branch that HEAD names.
    #[must_use]
    pub fn head(&self) -> &RefName {
        &self.head
    }

    /// The ref of this name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&RefTip> {
        let at = self.tips.binary_search_by(|tip| tip.name.as_str().cmp(name)).ok()?;
        self.tips.get(at)
    }

    /// What HEAD points at; `None` while its branch is unborn.
    #[must_use]
    pub fn head_tip(&self) -> Option<&RefTip> {
        self.get(self.head.as_str())
    }

    /// The refs whose names start with `prefix`, in name order.
    pub fn below<'a>(&'a self, prefix: &'a str) -> impl Iterator<Item = &'a RefTip> {
        let start = self.tips.partition_point(|tip| tip.name.as_str() < prefix);
        self.tips
            .get(start..)
            .unwrap_or_default()
            .iter()
            .take_while(move |tip| tip.name.as_str().starts_with(prefix))
    }

    /// The annotated tags: the tag's id and what it stands for in the end.
    pub fn annotated_tags(&self) -> impl Iterator<Item = (ObjectId, ObjectId)> + '_ {
        self.below("refs/tags/").filter_map(|tip| tip.peeled.map(|peeled| (tip.id, peeled)))
    }
}
