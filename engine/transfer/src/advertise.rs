//! What a server says first: the refs and capabilities of v0 and v1, the capabilities of v2.
//!
//! Formats: git's `gitprotocol-http`, `gitprotocol-pack` and `gitprotocol-v2`.

use yard_common::ObjectId;

use crate::pktline::{FLUSH, write_data, write_line};
use crate::refs::RefView;

/// How the server names itself.
pub const AGENT: &str = concat!("switchyard/", env!("CARGO_PKG_VERSION"));

/// The two services of the smart protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Service {
    /// Clone and fetch.
    UploadPack,
    /// Push.
    ReceivePack,
}

impl Service {
    /// The service of this name, as in `?service=NAME` and in the request's path.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        match name {
            "git-upload-pack" => Some(Self::UploadPack),
            "git-receive-pack" => Some(Self::ReceivePack),
            _ => None,
        }
    }

    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::UploadPack => "git-upload-pack",
            Self::ReceivePack => "git-receive-pack",
        }
    }
}

impl Service {
    /// The content type of [`info_refs`].
    #[must_use]
    pub fn advertisement_type(self) -> &'static str {
        match self {
            Self::UploadPack => "application/x-git-upload-pack-advertisement",
            Self::ReceivePack => "application/x-git-receive-pack-advertisement",
        }
    }

    /// The content type of a request of the service.
    #[must_use]
    pub fn request_type(self) -> &'static str {
        match self {
            Self::UploadPack => "application/x-git-upload-pack-request",
            Self::ReceivePack => "application/x-git-receive-pack-request",
        }
    }

    /// The content type of its answer, refusals included.
    #[must_use]
    pub fn result_type(self) -> &'static str {
        match self {
            Self::UploadPack => "application/x-git-upload-pack-result",
            Self::ReceivePack => "application/x-git-receive-pack-result",
        }
    }
}

/// The version of the wire protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Protocol {
    /// The first one.
    #[default]
    V0,
    /// As v0 with a version line.
    V1,
    /// Commands; for fetching only.
    V2,
}

impl Protocol {
    /// The highest version named in a `Git-Protocol` header, v0 when there is none.
    #[must_use]
    pub fn from_header(header: Option<&str>) -> Self {
        let named = header.unwrap_or_default().split(':').filter_map(|key| match key.trim() {
            "version=2" => Some(Self::V2),
            "version=1" => Some(Self::V1),
            _ => None,
        });
        named.max().unwrap_or_default()
    }
}

const UPLOAD_CAPABILITIES: &str = "\
     multi_ack thin-pack side-band side-band-64k ofs-delta shallow deepen-since \
     deepen-not deepen-relative no-progress include-tag multi_ack_detailed no-done \
     allow-tip-sha1-in-want allow-reachable-sha1-in-want filter object-format=sha1";

const RECEIVE_CAPABILITIES: &str = "\
     report-status report-status-v2 delete-refs side-band-64k quiet atomic ofs-delta \
     push-options object-format=sha1";

/// The body of `GET /info/refs?service=...`.
///
/// `haves` are tips of other repositories whose objects are at hand too (a fork's parent), told to
/// a pusher as `.have` so that it does not send them. A push is v0 or v1 whatever is asked for.
#[must_use]
pub fn info_refs(service: Service, protocol: Protocol, refs: &RefView, haves: &[ObjectId]) -> Vec<u8> {
    if service == Service::UploadPack && protocol == Protocol::V2 {
        return capabilities_v2();
    }
    let mut out = Vec::new();
    write_line(&mut out, &format!("# service={}", service.name()));
    out.extend_from_slice(FLUSH);
    if protocol == Protocol::V1 {
        write_line(&mut out, "version 1");
    }
    write_refs(&mut out, service, refs, haves);
    out.extend_from_slice(FLUSH);
    out
}

fn capabilities_v2() -> Vec<u8> {
    let mut out = Vec::new();
    write_line(&mut out, "version 2");
    write_line(&mut out, &format!("agent={AGENT}"));
    write_line(&mut out, "ls-refs=unborn");
    write_line(&mut out, "fetch=shallow wait-for-done filter");
    write_line(&mut out, "server-option");
    write_line(&mut out, "object-format=sha1");
    out.extend_from_slice(FLUSH);
    out
}

fn write_refs(out: &mut Vec<u8>, service: Service, refs: &RefView, haves: &[ObjectId]) {
    let mut capabilities = match service {
        Service::UploadPack => UPLOAD_CAPABILITIES.to_owned(),
        Service::ReceivePack => RECEIVE_CAPABILITIES.to_owned(),
    };
    let head = refs.head_tip().filter(|_| service == Service::UploadPack);
    if head.is_some() {
        capabilities.push_str(&format!(" symref=HEAD:{}", refs.head()));
    }
    capabilities.push_str(&format!(" agent={AGENT}"));
    let mut first = Some(capabilities);
    let mut line = |out: &mut Vec<u8>, id: ObjectId, name: &str| match first.take() {
        Some(capabilities) => write_data(out, format!("{id} {name}\0{capabilities}\n").as_bytes()),
        None => write_line(out, &format!("{id} {name}")),
    };
    if let Some(head) = head {
        line(out, head.id, "HEAD");
    }
    for tip in refs.tips().iter().filter(|tip| !tip.is_hidden()) {
        line(out, tip.id, tip.name.as_str());
        if let Some(peeled) = tip.peeled.filter(|_| service == Service::UploadPack) {
            line(out, peeled, &format!("{}^{{}}", tip.name));
        }
    }
    if service == Service::ReceivePack {
        for id in haves {
            line(out, *id, ".have");
        }
    }
    if first.is_some() {
        let capabilities = first.take().unwrap_or_default();
        write_data(out, format!("{} capabilities^{{}}\0{capabilities}\n", ObjectId::ZERO).as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::refs::RefTip;
    use yard_common::RefName;

    fn name(text: &str) -> RefName {
        RefName::new(text).unwrap()
    }

    fn view() -> RefView {
        let tip = |text: &str, byte: u8, peeled: Option<u8>| RefTip {
            name: name(text),
            id: ObjectId([byte; 20]),
            peeled: peeled.map(|byte| ObjectId([byte; 20])),
        };
        RefView::new(
            vec![
                tip("refs/tags/v1", 3, Some(1)),
                tip("refs/heads/main", 1, None),
                tip("refs/candidates/7/1", 9, None),
            ],
            name("refs/heads/main"),
        )
    }

    fn text(body: &[u8]) -> String {
        String::from_utf8_lossy(body).replace('\0', "|")
    }

    #[test]
    fn a_fetch_sees_head_first_peeled_tags_and_no_candidates() {
        let body = text(&info_refs(Service::UploadPack, Protocol::V0, &view(), &[]));
        assert!(body.starts_with("001e# service=git-upload-pack\n0000"), "{body}");
        assert!(body.contains(&format!("{} HEAD|multi_ack", "01".repeat(20))));
        assert!(body.contains(" symref=HEAD:refs/heads/main agent=switchyard/"));
        assert!(body.contains(&format!("{} refs/tags/v1^{{}}\n", "01".repeat(20))));
        assert!(!body.contains("candidates"));
        assert!(body.ends_with("0000"));
    }

    #[test]
    fn a_push_sees_refs_and_haves_but_no_head() {
        let have = ObjectId([5; 20]);
        let body = text(&info_refs(Service::ReceivePack, Protocol::V2, &view(), &[have]));
        assert!(body.starts_with("001f# service=git-receive-pack\n0000"), "{body}");
        assert!(body.contains(" refs/heads/main|report-status report-status-v2 delete-refs"));
        assert!(!body.contains("HEAD") && !body.contains("^{}"));
        assert!(body.contains(&format!("{have} .have\n")));
    }

    #[test]
    fn an_empty_repository_advertises_its_capabilities_alone() {
        let empty = RefView::new(Vec::new(), name("refs/heads/trunk"));
        for service in [Service::UploadPack, Service::ReceivePack] {
            let body = text(&info_refs(service, Protocol::V1, &empty, &[]));
            assert!(body.contains("version 1\n"));
            assert!(body.contains(&format!("{} capabilities^{{}}|", "00".repeat(20))), "{body}");
        }
    }

    #[test]
    fn the_highest_version_of_the_header_counts() {
        assert_eq!(Protocol::from_header(Some("version=2")), Protocol::V2);
        assert_eq!(Protocol::from_header(Some("version=1:version=2:x=y")), Protocol::V2);
        assert_eq!(Protocol::from_header(Some("version=3")), Protocol::V0);
        assert_eq!(Protocol::from_header(None), Protocol::V0);
    }
}
