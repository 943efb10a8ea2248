//! What each command's help says below its arguments.

/// What a newcomer has to know besides the list of commands.
pub(super) const YARD: &str = "\
Your first change:
  yard fork me                         a remote URL and a token of your own
  YARD_TOKEN=sy1... yard clone --fork me
  cd REPO; ...; git commit             the message is the intent of the change
  git push origin HEAD:refs/for/main   offers it; the answer names the change, like I3f9c...
  yard status                          where each change stands, and why it is not on main
  yard show I3f9                       its whole story; an id may be cut short while it is the only one
  git pull                             what landed

Sent back? Mend it (git pull --rebase when it collides), keep the trailer Change-Id in the message, push
again: that is the next version. One push is one change; push -o new-change where two touch one file.

Where a command works: --url, --token and --repo; else YARD_URL, YARD_TOKEN and YARD_REPO; else the clone
made by yard clone that you stand in. Scopes of tokens: read, submit, run, admin.

Exit status: 0 done, 1 refused or failed (the reason is on standard error), 2 a wrong command line.";

/// Of `yard repo`.
pub(super) const REPO: &str = "\
Example: yard repo toy; then push main with the token that it prints";

/// Of `yard fork`.
pub(super) const FORK: &str = "\
Example: yard fork ann
An agent's token may push to its own fork only. A lost token: an admin makes another with  yard
token submit --fork ann";

/// Of `yard clone`.
pub(super) const CLONE: &str = "\
Example: YARD_TOKEN=sy1... yard clone --fork ann work
The clone keeps address, repository and token in its configuration, which only you can read: git
and yard need no flags inside it.";

/// Of `yard rules`.
pub(super) const RULES: &str = "\
Example: yard rules test --rule changelog --paths CHANGELOG.md
Works in any git checkout, without a platform; changes nothing in it.";

/// Of `yard status`.
pub(super) const STATUS: &str = "\
Stages: submitted, queued, testing, replaying, held (by a person, a freeze, a claim, a parent:
it says which), needs-author (sent back: push a new version); ended: landed, withdrawn,
already-on-main, expired";

/// Of `yard logs`.
pub(super) const LOGS: &str = "\
Example: yard logs; then yard logs main-4-1 --follow
Of a long log the beginning and the end are kept, together 1 MiB. What would steer a terminal is left
out, unless --raw.";

/// Of `yard log`.
pub(super) const LOG: &str = "\
Examples: yard log -n 50 --agent ann --text parser; yard log --path src/parse --since 3d --verdict flaky
The column proof says how many tests were green on the landed tree, and what was merged, put
together by a rule, or redone by a model.";

/// Of `yard timeline`.
pub(super) const TIMELINE: &str = "\
Examples: yard timeline --since 2h; yard timeline --change I3f9c; yard timeline --kind needs-author
An agent's or a path's events are those about one change; those of whole trains: --change, --kind.";

/// Of `yard show`.
pub(super) const SHOW: &str = "\
Examples: yard show I3f9c; yard show -p I3f9c; yard show main-4-1
The history tells each version, attempt, run and sending back in the order of time; below a
landing stand its runs and the four values of each path. Of a change that a model redid follow
why, at what cost, the reviewed diff, the redone one, and where they differ.";

/// Of `yard cancel`.
pub(super) const CANCEL: &str = "\
Example: yard cancel I3f9c --reason 'done otherwise'
What has landed is reverted by a change of its own: git revert, trailer 'Reverts: CHANGE'.";

/// Of `yard hold`.
pub(super) const HOLD: &str = "\
Example: yard hold I3f9c --reason 'waits for the release'";

/// Of `yard requeue`.
pub(super) const REQUEUE: &str = "\
For a red run or a missing result that was nobody's fault; a collision needs a new version.";

/// Of `yard approve`.
pub(super) const APPROVE: &str = "\
Example: git fetch origin refs/changes/CHANGE/2 && git show FETCH_HEAD; yard approve CHANGE 2";

/// Of `yard freeze`.
pub(super) const FREEZE: &str = "\
Example: yard freeze --reason 'release today'; trains are tested on, nothing lands until yard
thaw";

/// Of `yard unprotect`.
pub(super) const UNPROTECT: &str = "\
A push that is no fast-forward needs a reason: git push -o reason=... --force";

/// Of `yard claim`.
pub(super) const CLAIM: &str = "\
Example: yard claim src/parser --seconds 3600
While it lasts no other fork's change of these paths lands; yard status shows all claims.";

/// Of `yard token`.
pub(super) const TOKEN: &str = "\
Examples: YARD_TOKEN=$(yard token run) yard runner
          yard token submit --fork ann --days 7
          yard token --revoke t-3f9c...
The first token of a platform is signed with its secret: SWITCHYARD_SECRET=... yard token --sign
admin";

/// Of `yard runner`.
pub(super) const RUNNER: &str = "\
Example: YARD_TOKEN=$(yard token run) yard runner
Runs [checks] command of .switchyard.toml with sh in a clean checkout. Ctrl-C ends after the run
in hand; again: at once.";

/// Of `yard rebuild-index`.
pub(super) const REBUILD: &str = "\
Example: yard rebuild-index
While it works, yard log and yard timeline find only a part; landing goes on. Broken off, it is
simply begun again.";

/// Of `yard fsck`.
pub(super) const FSCK: &str = "\
Fetches all history, then redoes each landing; exit status 1 when one cannot be proven again.
What was only compared, because an API submission's own file is not kept, is counted apart.";
