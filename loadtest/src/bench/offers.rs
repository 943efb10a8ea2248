//! A repository of given files, changes offered to it by the API, and what is on main in the end: by git alone.

use std::collections::BTreeMap;
use std::path::PathBuf;

use anyhow::{Result, bail};
use yard_cli::Client;
use yard_common::bytes::Base64;
use yard_common::intent::Intent;
use yard_common::{ForkName, RepoName, RepoPath};
use yard_loadtest::{Platform, Progress, Sandbox};
use yard_wire::api::{ApiChange, ApiEdit, NewFork, NewRepo, SubmitChanges, SubmitResult};

use crate::corpus::fast_import;

/// Changes offered in one request.
const BATCH: usize = 100;

/// One file as a change leaves it.
pub struct Edit {
    path: String,
    content: String,
}

impl Edit {
    /// This path with this content.
    pub fn of(path: &str, content: &str) -> Self {
        Self { path: path.to_owned(), content: content.to_owned() }
    }
}

/// One change.
pub struct Offer {
    /// The title of its intent.
    pub title: String,
    /// What it edits.
    pub edits: Vec<Edit>,
}

/// A repository with its first commit.
pub struct Ground<'a> {
    /// Its name.
    pub repo: RepoName,
    platform: &'a Platform,
    sandbox: &'a Sandbox,
    url: String,
    token: String,
    base: String,
    blobs: BTreeMap<String, String>,
}

/// Main, fetched and checked out by git.
pub struct Main {
    /// The commits after the first, each with its note.
    pub notes: BTreeMap<String, String>,
    folder: PathBuf,
}

impl Main {
    /// A file's content; empty where it is not there.
    pub fn file(&self, path: &str) -> String {
        std::fs::read_to_string(self.folder.join(path)).unwrap_or_default()
    }

    /// The names of a folder's files, in order.
    ///
    /// # Errors
    /// When there is no such folder.
    pub fn names(&self, folder: &str) -> Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in std::fs::read_dir(self.folder.join(folder))? {
            names.push(entry?.file_name().to_string_lossy().into_owned());
        }
        names.sort();
        Ok(names)
    }
}

impl<'a> Ground<'a> {
    /// Makes it, with these files on main.
    ///
    /// # Errors
    /// When git or the platform says no.
    pub fn new(
        platform: &'a Platform,
        sandbox: &'a Sandbox,
        name: &str,
        files: &BTreeMap<String, String>,
    ) -> Result<Self> {
        let bare = format!("{name}.git");
        sandbox.git(".", None, &["init", "-q", "--bare", &bare])?;
        let mut stream = String::from(
            "commit refs/heads/main\ncommitter bench <bench@example.org> 1700000000 +0000\ndata 5\nbase\n\n",
        );
        for (path, text) in files {
            stream.push_str(&format!("M 100644 inline {path}\ndata {}\n{text}\n", text.len()));
        }
        fast_import(sandbox, &bare, stream.as_bytes())?;
        let base = sandbox.git(&bare, None, &["rev-parse", "main"])?;
        let repo = RepoName::new(name)?;
        let made = platform.admin()?.new_repo(&NewRepo { name: repo.clone(), default_branch: None })?;
        sandbox.git(&bare, Some(&made.token), &["push", "-q", &made.url, "main:refs/heads/main"])?;
        let listing = sandbox.git(&bare, None, &["ls-tree", "-r", "main"])?;
        let blobs = listing.lines().filter_map(|line| {
            let (meta, path) = line.split_once('\t')?;
            Some((path.to_owned(), meta.split(' ').nth(2)?.to_owned()))
        });
        let blobs = blobs.collect();
        Ok(Self { repo, platform, sandbox, url: made.url, token: made.token, base, blobs })
    }

    /// Offers changes from the first commit, in order, by one fork.
    ///
    /// # Errors
    /// When one is refused.
    pub fn offer_all(&self, fork: &str, offers: &[Offer]) -> Result<()> {
        let fork = ForkName::new(fork)?;
        let made = self.platform.admin()?.new_fork(&self.repo, &NewFork { name: fork.clone() })?;
        let client = Client::new(self.platform.url(), &made.token);
        let mut progress = Progress::new(&format!("{}: offered by {fork}", self.repo), offers.len());
        for (number, batch) in offers.chunks(BATCH).enumerate() {
            progress.at(number * BATCH, "");
            let changes = batch.iter().map(|offer| self.change(offer)).collect::<Result<_>>()?;
            let body = SubmitChanges { fork: Some(fork.clone()), changes };
            let reply = client.submit(&self.repo, &body, &format!("{fork}-{number}"))?;
            for result in reply.results {
                if let SubmitResult::Refused(problem) = result {
                    bail!("a change was refused: {}", problem.detail);
                }
            }
        }
        progress.at(offers.len(), "");
        Ok(())
    }

    fn change(&self, offer: &Offer) -> Result<ApiChange> {
        let edits = offer.edits.iter().map(|edit| {
            Ok(ApiEdit {
                path: RepoPath::new(edit.path.as_bytes())?,
                base: self.blobs.get(&edit.path).map(|id| id.parse()).transpose()?,
                content: None,
                content_base64: Some(Base64(edit.content.clone().into_bytes())),
                mode: None,
                keep: false,
            })
        });
        Ok(ApiChange {
            change: None,
            new_change: true,
            base: Some(self.base.parse()?),
            edits: edits.collect::<Result<_>>()?,
            intent: Intent { title: offer.title.clone(), ..Intent::default() },
            author: Some("bench <bench@example.org>".to_owned()),
            reverts: Vec::new(),
        })
    }

    /// Main as git gets it now, checked by `git fsck`.
    ///
    /// # Errors
    /// When git finds fault with it.
    pub fn fetch(&self) -> Result<Main> {
        let bare = format!("{}.git", self.repo);
        let git = |args: &[&str]| self.sandbox.git(&bare, Some(&self.token), args);
        let refs = ["+refs/heads/main:refs/heads/landed", "+refs/notes/intent:refs/notes/intent"];
        git(&["fetch", "-q", &self.url, refs[0], refs[1]])?;
        git(&["fsck", "--strict"])?;
        let range = format!("{}..landed", self.base);
        let log = git(&["log", "--notes=intent", "--format=%x01%H%x02%N", &range])?;
        let commits = log.split('\u{1}').filter_map(|one| one.split_once('\u{2}'));
        let notes = commits.map(|(commit, note)| (commit.to_owned(), note.to_owned())).collect();
        let folder = self.sandbox.join(&format!("{}-main", self.repo));
        git(&["worktree", "add", "-q", "--detach", &folder.to_string_lossy(), "landed"])?;
        Ok(Main { notes, folder })
    }
}
