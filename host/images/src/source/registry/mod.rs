//! A registry (OCI distribution specification 1.1, "Pull"): manifests by tag or digest, blobs by digest, over HTTPS; over
//! HTTP where it is on this host.
//!
//! A registry that wants to know who asks answers 401 and says whom to ask for a token. That is done once, with the credentials that
//! docker keeps, if it keeps any for this registry. A token goes to the registry and never to where it redirects to.
//!
//! Connections end and servers stumble: what may pass (a connection that is lost, a status of 500 and above) is asked for
//! again a few times ([`retry`]), a blob from where it ended ([`blob`]). One that says nothing for half a minute is lost, too.

mod blob;
mod challenge;
mod credentials;
mod retry;
#[cfg(test)]
mod tests;

use std::io::{self, Cursor, Read};
use std::time::Duration;

use serde::Deserialize;
use ureq::http::{Response, StatusCode, header};
use ureq::tls::{RootCerts, TlsConfig};
use ureq::{Agent, Body, Proxy};

use self::blob::Blob;
use self::challenge::Challenge;
use self::credentials::Credentials;
use self::retry::persistently;
use super::{DOCUMENT_BYTES_MAX, Source};
use crate::digest::Digest;
use crate::document::{Descriptor, INDEX_TYPES, MANIFEST_TYPES};
use crate::error::{Error, Result};
use crate::reference::{Name, Remote};

/// How long a registry may take to answer, and to go on with what it sends; not to send all it has.
const PATIENCE: Duration = Duration::from_secs(30);

/// An image of a registry.
pub(super) struct Registry {
    remote: Remote,
    agent: Agent,
    /// The header that says who we are, once it is wanted.
    authorization: Option<String>,
    /// Manifests that were fetched to learn their digests.
    top: Option<(Digest, Vec<u8>)>,
}

/// Where a registry says what the manifest is that it sends for a tag.
const DIGEST_HEADER: &str = "docker-content-digest";
const DIGEST_PREFIX: &str = "sha256:";

/// What a server of tokens answers; old ones use the first name, new ones the second.
#[derive(Deserialize)]
struct Token {
    token: Option<String>,
    access_token: Option<String>,
}

pub(super) fn open(remote: &Remote) -> Registry {
    with_patience(remote, PATIENCE)
}

fn with_patience(remote: &Remote, patience: Duration) -> Registry {
    let tls = TlsConfig::builder().root_certs(RootCerts::PlatformVerifier);
    // A proxy has another loopback than we.
    let proxy = match is_loopback(&remote.host) {
        true => None,
        false => Proxy::try_from_env(),
    };
    let config = Agent::config_builder()
        .proxy(proxy)
        .http_status_as_error(false)
        .timeout_resolve(Some(patience))
        .timeout_connect(Some(patience))
        .timeout_recv_response(Some(patience))
        .timeout_per_read(Some(patience))
        .tls_config(tls.build())
        .build();
    Registry {
        remote: remote.clone(),
        agent: config.into(),
        authorization: None,
        top: None,
    }
}

/// Whether the host is this one, where nobody else reads what is sent.
fn is_loopback(host: &str) -> bool {
    let name = match host.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or(rest),
        None => host.split(':').next().unwrap_or(host),
    };
    let address = name.parse::<std::net::IpAddr>();
    name == "localhost" || address.is_ok_and(|address| address.is_loopback())
}

impl Registry {
    fn url(&self, rest: &str) -> String {
        let scheme = if is_loopback(&self.remote.host) {
            "http"
        } else {
            "https"
        };
        let Remote {
            host, repository, ..
        } = &self.remote;
        format!("{scheme}://{host}/v2/{repository}/{rest}")
    }

    fn failed(&self, said: impl ToString, way_out: &'static str) -> Error {
        self.said(said, way_out, false)
    }

    /// The same, which may be otherwise in a moment.
    fn stumbled(&self, said: impl ToString, way_out: &'static str) -> Error {
        self.said(said, way_out, true)
    }

    fn said(&self, said: impl ToString, way_out: &'static str, is_passing: bool) -> Error {
        Error::Registry {
            host: self.remote.host.clone(),
            said: said.to_string().trim_end_matches('.').into(),
            way_out,
            is_passing,
        }
    }

    /// Asks for what is at `url`, from that byte on.
    fn get(&self, url: &str, authorization: Option<&str>, start: u64) -> Result<Response<Body>> {
        let accept = [MANIFEST_TYPES, INDEX_TYPES].concat().join(", ");
        let mut request = self.agent.get(url).header(header::ACCEPT, accept);
        if let Some(authorization) = authorization {
            request = request.header(header::AUTHORIZATION, authorization);
        }
        if start > 0 {
            request = request.header(header::RANGE, format!("bytes={start}-"));
        }
        let way_out = "check its name, and whether this host reaches it";
        request.call().map_err(|error| match is_lost(&error) {
            true => self.stumbled(format!("half of an answer ({error})"), "try again later"),
            false => self.failed(format!("nothing ({error})"), way_out),
        })
    }

    /// Asks, and once more as somebody if the registry wants to know who asks. `None` if it has no such thing.
    fn ask(&mut self, rest: &str, start: u64) -> Result<Option<Response<Body>>> {
        let url = self.url(rest);
        let mut answer = self.get(&url, self.authorization.as_deref(), start)?;
        if answer.status() == StatusCode::UNAUTHORIZED {
            self.authorization = Some(self.authorize(&answer)?);
            answer = self.get(&url, self.authorization.as_deref(), start)?;
        }
        match answer.status() {
            StatusCode::OK | StatusCode::PARTIAL_CONTENT => Ok(Some(answer)),
            StatusCode::NOT_FOUND => Ok(None),
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => Err(self.refused(answer.status())),
            StatusCode::TOO_MANY_REQUESTS => {
                Err(self.failed(answer.status(), "try again later, or `docker login` there"))
            }
            status if status.is_server_error() => Err(self.stumbled(status, "try again later")),
            status => Err(self.failed(status, "try again later")),
        }
    }

    fn refused(&self, status: StatusCode) -> Error {
        self.failed(status, "`docker login` there, or check the image's name")
    }

    /// The header that the challenge in `answer` asks for.
    fn authorize(&self, answer: &Response<Body>) -> Result<String> {
        let challenges = answer.headers().get_all(header::WWW_AUTHENTICATE);
        let mut challenges = challenges.iter().filter_map(|text| text.to_str().ok());
        let challenge = challenges.find_map(Challenge::parse);
        let credentials = Credentials::find(&self.remote.host);
        match (challenge, credentials) {
            (Some(Challenge::Basic), Some(credentials)) => Ok(credentials.basic()),
            (Some(Challenge::Bearer { realm, query }), credentials) => {
                self.token(&realm, &query, credentials)
            }
            _ => Err(self.refused(answer.status())),
        }
    }

    fn token(&self, realm: &str, query: &str, credentials: Option<Credentials>) -> Result<String> {
        let is_safe = realm.starts_with("https://") || is_loopback(&self.remote.host);
        if !is_safe {
            return Err(self.failed("that tokens come over HTTP", "use a registry with TLS"));
        }
        let joint = if realm.contains('?') { '&' } else { '?' };
        let url = format!("{realm}{joint}{query}");
        let basic = credentials.map(|credentials| credentials.basic());
        let answer = self.get(&url, basic.as_deref(), 0)?;
        if answer.status().is_server_error() {
            return Err(self.stumbled(answer.status(), "try again later"));
        }
        if answer.status() != StatusCode::OK {
            return Err(self.refused(answer.status()));
        }
        let text = self.document(answer, "a token")?;
        let token = serde_json::from_slice::<Token>(&text).ok();
        let token = token.and_then(|token| token.token.or(token.access_token));
        match token {
            Some(token) => Ok(format!("Bearer {token}")),
            None => Err(self.stumbled("no token", "try again later")),
        }
    }

    /// All that an answer brings, as far as that is a document.
    fn document(&self, answer: Response<Body>, what: &str) -> Result<Vec<u8>> {
        let mut text = Vec::new();
        let mut body = answer.into_body().into_reader().take(DOCUMENT_BYTES_MAX);
        match body.read_to_end(&mut text) {
            Ok(_) => Ok(text),
            Err(error) => Err(self.interrupted(what, error)),
        }
    }

    fn interrupted(&self, what: impl ToString, reason: impl ToString) -> Error {
        Error::Interrupted {
            host: self.remote.host.clone(),
            what: what.to_string(),
            reason: reason.to_string(),
        }
    }

    fn fetch_top(&mut self) -> Result<Descriptor> {
        let version = self.remote.version.clone();
        let Some(answer) = self.ask(&format!("manifests/{version}"), 0)? else {
            return Err(Error::NoSuchImage {
                name: format!("docker://{}", self.remote),
                way_out: "the registry has none of that name and tag".into(),
            });
        };
        let media_type = answer.headers().get(header::CONTENT_TYPE);
        let media_type = media_type.and_then(|text| text.to_str().ok());
        let media_type = media_type.unwrap_or_default().split(';').next();
        let media_type = media_type.unwrap_or_default().trim().to_string();
        let announced = answer.headers().get(DIGEST_HEADER);
        let announced = announced.and_then(|text| text.to_str().ok());
        let announced = announced.map(ToString::to_string);
        let text = self.document(answer, "a manifest")?;
        let digest = Digest::of(&text);
        if let Some(announced) = announced.filter(|own| *own != digest.to_string())
            && announced.starts_with(DIGEST_PREFIX)
        {
            return Err(self.interrupted("a manifest", format!("it is not {announced}")));
        }
        if version.contains(':') && version != digest.to_string() {
            return Err(Error::BlobDamaged {
                origin: self.origin(),
                digest: version,
                found: format!("it is {digest}"),
            });
        }
        let size = text.len() as u64;
        self.top = Some((digest.clone(), text));
        Ok(Descriptor {
            media_type,
            digest,
            size,
            platform: None,
            annotations: Default::default(),
        })
    }
}

impl Source for Registry {
    fn origin(&self) -> String {
        format!("docker://{}/{}", self.remote.host, self.remote.repository)
    }

    fn name(&self) -> Option<Name> {
        let Remote {
            host,
            repository,
            version,
        } = &self.remote;
        let tag = Some(version.as_str()).filter(|version| !version.contains(':'));
        Name::of(&format!("{host}/{repository}"), tag)
    }

    fn top(&mut self) -> Result<Descriptor> {
        persistently(|| self.fetch_top())
    }

    fn open(&mut self, blob: &Descriptor) -> Result<Box<dyn Read + '_>> {
        if let Some((_, text)) = self
            .top
            .as_ref()
            .filter(|(digest, _)| *digest == blob.digest)
        {
            return Ok(Box::new(Cursor::new(text.clone())));
        }
        let is_manifest = blob.is_index() || MANIFEST_TYPES.contains(&blob.media_type.as_str());
        let kind = if is_manifest { "manifests" } else { "blobs" };
        let rest = format!("{kind}/{}", blob.digest);
        match persistently(|| self.ask(&rest, 0))? {
            Some(answer) => Ok(Box::new(Blob::new(self, rest, blob, answer))),
            None => Err(Error::BlobMissing {
                origin: self.origin(),
                digest: blob.digest.to_string(),
            }),
        }
    }
}

/// Whether the connection was there and ended.
fn is_lost(error: &ureq::Error) -> bool {
    match error {
        ureq::Error::Io(error) => matches!(
            error.kind(),
            io::ErrorKind::ConnectionReset
                | io::ErrorKind::ConnectionAborted
                | io::ErrorKind::BrokenPipe
                | io::ErrorKind::UnexpectedEof
        ),
        ureq::Error::Protocol(_) | ureq::Error::BodyStalled => true,
        _ => false,
    }
}
