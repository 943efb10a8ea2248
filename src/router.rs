//! The route table: every address of the platform, read from top to bottom.

use Need::{Admin, Nothing, PlatformAdmin, Read, Run, Submit};

/// What a bearer must be allowed to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Need {
    /// No token.
    Nothing,
    /// To read the repository.
    Read,
    /// To submit to it, in the fork that the token is bound to.
    Submit,
    /// To lease and report its runs.
    Run,
    /// Everything in it.
    Admin,
    /// Everything in every repository.
    PlatformAdmin,
}

/// One thing that the platform does for a caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(missing_docs, reason = "each is described by its route")]
pub enum Endpoint {
    Health,
    OpenApi,
    Metrics,
    ProblemPage,
    CreateRepo,
    ListRepos,
    RepoStatus,
    CreateFork,
    CreateToken,
    RevokeToken,
    SubmitChanges,
    ListChanges,
    ShowChange,
    DiffChange,
    CancelChange,
    HoldChange,
    ReleaseChange,
    RequeueChange,
    ApproveChange,
    Freeze,
    Thaw,
    Protect,
    Unprotect,
    RebuildIndex,
    IndexProgress,
    Claim,
    ReleaseClaim,
    Landings,
    Log,
    Timeline,
    LaneStatus,
    Lease,
    Renew,
    Report,
    Events,
    RunLog,
    InfoRefs,
    UploadPack,
    ReceivePack,
}

/// The methods that routes use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[allow(missing_docs, reason = "HTTP's own")]
pub enum Verb {
    Get,
    Post,
    Delete,
}

impl Verb {
    /// HTTP's name of the method; HEAD is answered as GET.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        match name {
            "GET" | "HEAD" => Some(Self::Get),
            "POST" => Some(Self::Post),
            "DELETE" => Some(Self::Delete),
            _ => None,
        }
    }

    /// HTTP's name of the method.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Post => "POST",
            Self::Delete => "DELETE",
        }
    }
}

/// One line of the table.
#[derive(Debug, Clone, Copy)]
pub struct Route {
    /// The method.
    pub verb: Verb,
    /// The address; `{name}` stands for one part.
    pub pattern: &'static str,
    /// What is done.
    pub endpoint: Endpoint,
    /// Who may.
    pub need: Need,
    /// The type of the body, as in `wire`; empty for none.
    pub body: &'static str,
    /// The type of the reply, as in `wire`.
    pub reply: &'static str,
    /// One sentence.
    pub what: &'static str,
}

/// What `?name=` may narrow an answer by.
#[must_use]
pub fn filters(endpoint: Endpoint) -> &'static [&'static str] {
    match endpoint {
        E::Log => &["agent", "path", "task", "verdict", "text", "since", "until", "before", "limit"],
        E::Timeline => &["agent", "path", "change", "kind", "since", "until", "before", "limit"],
        _ => &[],
    }
}

const fn get(
    pattern: &'static str,
    endpoint: Endpoint,
    need: Need,
    reply: &'static str,
    what: &'static str,
) -> Route {
    Route { verb: Verb::Get, pattern, endpoint, need, body: "", reply, what }
}

const fn delete(pattern: &'static str, endpoint: Endpoint, need: Need, what: &'static str) -> Route {
    Route { verb: Verb::Delete, pattern, endpoint, need, body: "", reply: "Empty", what }
}

const fn post(
    pattern: &'static str,
    endpoint: Endpoint,
    need: Need,
    body: &'static str,
    reply: &'static str,
    what: &'static str,
) -> Route {
    Route { verb: Verb::Post, pattern, endpoint, need, body, reply, what }
}

use Endpoint as E;

/// Every address. The board's pages and files are served by the platform's assets where no route fits.
pub const ROUTES: &[Route] = &[
    get("/healthz", E::Health, Nothing, "Health", "Is the platform up?"),
    get("/openapi.json", E::OpenApi, Nothing, "Document", "This description of the API."),
    get("/problems/{problem}", E::ProblemPage, Nothing, "Text", "What a kind of problem means."),
    get("/api/metrics", E::Metrics, PlatformAdmin, "Counts", "Counts costly operations of this isolate."),
    post("/api/repos", E::CreateRepo, PlatformAdmin, "NewRepo", "RepoReply", "Makes a repository."),
    get("/api/repos", E::ListRepos, PlatformAdmin, "RepoEntries", "Lists all repositories."),
    get("/api/repos/{repo}", E::RepoStatus, Read, "StatusReply", "Says where main is and what waits."),
    post("/api/repos/{repo}/forks", E::CreateFork, Submit, "NewFork", "ForkReply", "Makes a fork."),
    post("/api/repos/{repo}/tokens", E::CreateToken, Admin, "NewToken", "TokenReply", "Makes a token."),
    delete("/api/repos/{repo}/tokens/{id}", E::RevokeToken, Admin, "Revokes a token."),
    post(
        "/api/repos/{repo}/changes",
        E::SubmitChanges,
        Submit,
        "SubmitChanges",
        "SubmitReply",
        "Offers changes for landing.",
    ),
    get("/api/repos/{repo}/changes", E::ListChanges, Read, "ChangeStatuses", "Lists changes, newest first."),
    get("/api/repos/{repo}/changes/{change}", E::ShowChange, Read, "ChangeDetail", "Shows a change, whole."),
    get(
        "/api/repos/{repo}/changes/{change}/diff",
        E::DiffChange,
        Read,
        "ChangeDiff",
        "Shows a version's edits.",
    ),
    post(
        "/api/repos/{repo}/changes/{change}/cancel",
        E::CancelChange,
        Submit,
        "Reason",
        "Empty",
        "Takes a change back.",
    ),
    post(
        "/api/repos/{repo}/changes/{change}/hold",
        E::HoldChange,
        Submit,
        "Reason",
        "Empty",
        "Holds a change.",
    ),
    post(
        "/api/repos/{repo}/changes/{change}/release",
        E::ReleaseChange,
        Submit,
        "Reason",
        "Empty",
        "Ends a hold.",
    ),
    post(
        "/api/repos/{repo}/changes/{change}/requeue",
        E::RequeueChange,
        Submit,
        "Reason",
        "Empty",
        "Offers a change again as it is.",
    ),
    post(
        "/api/repos/{repo}/changes/{change}/approve",
        E::ApproveChange,
        Admin,
        "Approval",
        "Empty",
        "Lets this version change .switchyard.toml.",
    ),
    post("/api/repos/{repo}/freeze", E::Freeze, Admin, "Reason", "Empty", "Stops landing."),
    post("/api/repos/{repo}/thaw", E::Thaw, Admin, "Reason", "Empty", "Lets landing go on."),
    post("/api/repos/{repo}/protect", E::Protect, Admin, "Reason", "Empty", "Forbids direct pushes to main."),
    post(
        "/api/repos/{repo}/unprotect",
        E::Unprotect,
        Admin,
        "Reason",
        "Empty",
        "Allows admins direct pushes to main.",
    ),
    post(
        "/api/repos/{repo}/rebuild-index",
        E::RebuildIndex,
        Admin,
        "Empty",
        "IndexReply",
        "Empties the index in steps, then has the objects send all rows once more.",
    ),
    get("/api/repos/{repo}/rebuild-index", E::IndexProgress, Read, "IndexReply", "How far the index is."),
    post("/api/repos/{repo}/claims", E::Claim, Submit, "NewClaim", "ClaimReply", "Leases paths."),
    delete("/api/repos/{repo}/claims/{fence}", E::ReleaseClaim, Submit, "Gives a claim back."),
    get("/api/repos/{repo}/landings", E::Landings, Read, "Facts", "Reads the landing log with its proofs."),
    get("/api/repos/{repo}/log", E::Log, Read, "Records", "Searches landed changes, newest first."),
    get("/api/repos/{repo}/timeline", E::Timeline, Read, "TimelineEvents", "Who did what when, newest first."),
    get(
        "/api/repos/{repo}/lanes/{lane}",
        E::LaneStatus,
        Read,
        "LaneStatusReply",
        "Shows a lane's queue and runs.",
    ),
    post(
        "/api/repos/{repo}/lanes/{lane}/lease",
        E::Lease,
        Run,
        "LeaseRequest",
        "OptionalWork",
        "Leases a run.",
    ),
    post("/api/repos/{repo}/lanes/{lane}/renew", E::Renew, Run, "Renew", "Millis", "Keeps a lease alive."),
    post(
        "/api/repos/{repo}/lanes/{lane}/report",
        E::Report,
        Run,
        "Report",
        "Empty",
        "Reports a run's result.",
    ),
    get(
        "/api/repos/{repo}/events",
        E::Events,
        Read,
        "EventsReply",
        "Events after a cursor: JSON, SSE or WebSocket.",
    ),
    get(
        "/api/repos/{repo}/runs/{run}/log",
        E::RunLog,
        Read,
        "RunLog",
        "What a run printed, also while it runs.",
    ),
    get("/{repo}.git/info/refs", E::InfoRefs, Read, "Git", "git: refs and capabilities."),
    post("/{repo}.git/git-upload-pack", E::UploadPack, Read, "Git", "Git", "git: fetch."),
    post("/{repo}.git/git-receive-pack", E::ReceivePack, Submit, "Git", "Git", "git: push and submit."),
    get(
        "/{repo}/forks/{fork}.git/info/refs",
        E::InfoRefs,
        Read,
        "Git",
        "git: a fork's refs and capabilities.",
    ),
    post(
        "/{repo}/forks/{fork}.git/git-upload-pack",
        E::UploadPack,
        Read,
        "Git",
        "Git",
        "git: fetch from a fork.",
    ),
    post(
        "/{repo}/forks/{fork}.git/git-receive-pack",
        E::ReceivePack,
        Submit,
        "Git",
        "Git",
        "git: push to a fork and submit from it.",
    ),
];

impl Endpoint {
    /// Does git speak here, and not the JSON API?
    #[must_use]
    pub fn is_git(self) -> bool {
        matches!(self, Self::InfoRefs | Self::UploadPack | Self::ReceivePack)
    }
}

/// The named parts of an address, in their order.
pub type Parts = Vec<(&'static str, String)>;

/// What an address leads to.
#[derive(Debug)]
pub enum Found {
    /// This route, with its named parts.
    Route(&'static Route, Parts),
    /// The address exists, but not for this method; these do.
    WrongVerb(Vec<Verb>),
    /// No route has this address.
    Nothing,
}

fn part_matches(pattern: &'static str, part: &str) -> Option<Option<(&'static str, String)>> {
    let Some(open) = pattern.strip_prefix('{') else {
        return (pattern == part).then_some(None);
    };
    let (name, suffix) = open.split_once('}')?;
    let value = part.strip_suffix(suffix)?;
    (!value.is_empty()).then(|| Some((name, value.to_owned())))
}

fn parts_of(pattern: &'static str, path: &str) -> Option<Parts> {
    let mut parts = Parts::new();
    let (mut patterns, mut given) = (pattern.split('/'), path.split('/'));
    loop {
        match (patterns.next(), given.next()) {
            (None, None) => return Some(parts),
            (Some(pattern), Some(part)) => parts.extend(part_matches(pattern, part)?),
            _ => return None,
        }
    }
}

/// Finds the route of a method and a decoded path.
#[must_use]
pub fn find(verb: Option<Verb>, path: &str) -> Found {
    let mut others = Vec::new();
    for route in ROUTES {
        if let Some(parts) = parts_of(route.pattern, path) {
            if Some(route.verb) == verb {
                return Found::Route(route, parts);
            }
            others.push(route.verb);
        }
    }
    if others.is_empty() { Found::Nothing } else { Found::WrongVerb(others) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn endpoint(verb: Verb, path: &str) -> Option<(Endpoint, Parts)> {
        match find(Some(verb), path) {
            Found::Route(route, parts) => Some((route.endpoint, parts)),
            _ => None,
        }
    }

    #[test]
    fn each_address_leads_to_its_endpoint_with_its_parts() {
        let repo = || ("repo", "click".to_owned());
        let fork = || ("fork", "a1".to_owned());
        assert_eq!(endpoint(Verb::Get, "/healthz"), Some((Endpoint::Health, vec![])));
        assert_eq!(endpoint(Verb::Get, "/click.git/info/refs"), Some((Endpoint::InfoRefs, vec![repo()])));
        assert_eq!(
            endpoint(Verb::Post, "/click/forks/a1.git/git-receive-pack"),
            Some((Endpoint::ReceivePack, vec![repo(), fork()]))
        );
        assert_eq!(
            endpoint(Verb::Post, "/api/repos/click/changes/c1234567/hold"),
            Some((Endpoint::HoldChange, vec![repo(), ("change", "c1234567".into())]))
        );
    }

    #[test]
    fn other_methods_and_other_addresses_are_told_apart() {
        assert!(
            matches!(find(Some(Verb::Delete), "/api/repos"), Found::WrongVerb(verbs) if verbs.len() == 2)
        );
        assert!(matches!(find(None, "/healthz"), Found::WrongVerb(_)));
        for path in
            ["/", "/api", "/api/repos/", "/api/repos/click/", "/.git/info/refs", "/a/b.git/info/refs", "//"]
        {
            assert!(matches!(find(Some(Verb::Get), path), Found::Nothing), "{path}");
        }
    }

    #[test]
    fn no_two_routes_share_method_and_address() {
        for (n, route) in ROUTES.iter().enumerate() {
            assert!(
                !ROUTES[..n]
                    .iter()
                    .any(|other| { other.verb == route.verb && other.pattern == route.pattern }),
                "{}",
                route.pattern
            );
        }
    }
}
