//! How images are named: skopeo's transports, and names of the store.

use std::fmt::{self, Display};
use std::path::PathBuf;
use std::str::FromStr;

use crate::error::Error;

const FORM: &str = "give oci:FOLDER[:TAG], oci-archive:FILE[:TAG], docker-archive:FILE[:NAME], docker://HOST/NAME[:TAG] or a name that `sietch images` lists";
const LATEST: &str = "latest";

/// Where an image is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reference {
    /// A folder by the OCI image layout.
    Layout {
        /// The folder.
        folder: PathBuf,
        /// Which of its images.
        tag: Option<String>,
    },
    /// Such a folder as a tar archive.
    LayoutArchive {
        /// The archive.
        file: PathBuf,
        /// Which of its images.
        tag: Option<String>,
    },
    /// What `docker save` writes.
    DockerArchive {
        /// The archive.
        file: PathBuf,
        /// Which of its images.
        name: Option<String>,
    },
    /// A registry.
    Registry(Remote),
    /// An image of the store.
    Stored(Name),
}

/// An image of a registry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Remote {
    /// `HOST[:PORT]`.
    pub host: String,
    /// The name there, with slashes.
    pub repository: String,
    /// A tag, or a digest.
    pub version: String,
}

/// A name in the store: `NAME[:TAG]`, with the tag.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Name(String);

impl Name {
    /// `base:tag`, as long as that is one.
    pub(crate) fn of(base: &str, tag: Option<&str>) -> Option<Self> {
        format!("{base}:{}", tag.unwrap_or(LATEST)).parse().ok()
    }

    /// As it is typed and listed.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether it is `other` with a host or folders in front, or `other` itself.
    pub(crate) fn ends_with(&self, other: &Self) -> bool {
        let front = self.0.strip_suffix(&other.0);
        front.is_some_and(|front| front.is_empty() || front.ends_with('/'))
    }

    /// The last part, without tag: what a machine is called.
    pub fn short(&self) -> &str {
        let last = self.0.rsplit('/').next().unwrap_or(&self.0);
        last.split([':', '@']).next().unwrap_or(last)
    }
}

impl FromStr for Name {
    type Err = Error;

    /// Lower-case words between slashes, perhaps a host's port in front (distribution specification).
    fn from_str(text: &str) -> Result<Self, Error> {
        let wrong = || Error::BadReference {
            text: text.into(),
            form: FORM,
        };
        let (path, tag) = split_tag(text);
        let tag = tag.unwrap_or(LATEST);
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "._-:@".contains(c);
        let is_word = |word: &str| {
            word.starts_with(|c: char| c.is_ascii_alphanumeric()) && word.chars().all(is_plain)
        };
        match path.split('/').all(is_word) && is_word(tag) && text.len() < 256 {
            true => Ok(Self(format!("{path}:{tag}"))),
            false => Err(wrong()),
        }
    }
}

impl Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// What stands behind the last colon, unless that is a host's port.
fn split_tag(text: &str) -> (&str, Option<&str>) {
    match text.rsplit_once(':') {
        Some((path, tag)) if !tag.contains('/') => (path, Some(tag)),
        _ => (text, None),
    }
}

impl FromStr for Remote {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let wrong = || Error::BadReference {
            text: format!("docker://{text}"),
            form: "give docker://HOST/NAME[:TAG|@DIGEST]",
        };
        let (host, rest) = text.split_once('/').ok_or_else(wrong)?;
        let (repository, version) = match rest.split_once('@') {
            Some((repository, digest)) => (split_tag(repository).0, Some(digest)),
            None => split_tag(rest),
        };
        let is_word = |word: &str| {
            let is_plain =
                |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "._-".contains(c);
            word.starts_with(|c: char| c.is_ascii_alphanumeric()) && word.chars().all(is_plain)
        };
        let is_host = !host.is_empty()
            && host
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || ".-:[]".contains(c));
        let version = version.unwrap_or(LATEST);
        let is_version = |c: char| c.is_ascii_alphanumeric() || "._-:".contains(c);
        match is_host && repository.split('/').all(is_word) && version.chars().all(is_version) {
            true => Ok(Self {
                host: host.into(),
                repository: repository.into(),
                version: version.into(),
            }),
            false => Err(wrong()),
        }
    }
}

impl Reference {
    /// Reads a reference that begins with a transport; `None` if it begins with none.
    pub fn with_transport(text: &str) -> Option<Result<Self, Error>> {
        let is_empty = || Error::BadReference {
            text: text.into(),
            form: FORM,
        };
        let (transport, rest) = text.split_once(':')?;
        let place = || {
            // A path may hold colons; a tag holds no slash.
            let (path, tag) = match split_tag(rest) {
                (path, Some(tag)) if !path.is_empty() => (path, Some(tag.to_string())),
                _ => (rest, None),
            };
            match path.is_empty() {
                true => Err(is_empty()),
                false => Ok((PathBuf::from(path), tag)),
            }
        };
        Some(match transport {
            "oci" => place().map(|(folder, tag)| Self::Layout { folder, tag }),
            "oci-archive" => place().map(|(file, tag)| Self::LayoutArchive { file, tag }),
            "docker-archive" => docker_archive(rest).ok_or_else(is_empty),
            "docker" => match rest.strip_prefix("//") {
                Some(remote) => remote.parse().map(Self::Registry),
                None => Err(is_empty()),
            },
            _ => return None,
        })
    }
}

/// `FILE[:NAME[:TAG]]`.
fn docker_archive(rest: &str) -> Option<Reference> {
    let (file, name) = match rest.split_once(':') {
        Some((file, name)) => (file, Some(name.to_string())),
        None => (rest, None),
    };
    (!file.is_empty()).then(|| Reference::DockerArchive {
        file: file.into(),
        name,
    })
}

impl FromStr for Reference {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        match Self::with_transport(text) {
            Some(reference) => reference,
            None => text.parse().map(Self::Stored),
        }
    }
}

impl Display for Remote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mark = if self.version.contains(':') { '@' } else { ':' };
        write!(f, "{}/{}{mark}{}", self.host, self.repository, self.version)
    }
}

impl Display for Reference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tagged =
            |tag: &Option<String>| tag.as_ref().map_or(String::new(), |tag| format!(":{tag}"));
        match self {
            Self::Layout { folder, tag } => write!(f, "oci:{}{}", folder.display(), tagged(tag)),
            Self::LayoutArchive { file, tag } => {
                write!(f, "oci-archive:{}{}", file.display(), tagged(tag))
            }
            Self::DockerArchive { file, name } => {
                write!(f, "docker-archive:{}{}", file.display(), tagged(name))
            }
            Self::Registry(remote) => write!(f, "docker://{remote}"),
            Self::Stored(name) => write!(f, "{name}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Reference {
        text.parse().unwrap()
    }

    #[test]
    fn a_transport_says_where_an_image_is() {
        let layout = |tag: Option<&str>| Reference::Layout {
            folder: "/a/b".into(),
            tag: tag.map(Into::into),
        };
        assert_eq!(read("oci:/a/b"), layout(None));
        assert_eq!(read("oci:/a/b:7.0"), layout(Some("7.0")));
        assert_eq!(
            read("docker-archive:r.tar:redis:7"),
            Reference::DockerArchive {
                file: "r.tar".into(),
                name: Some("redis:7".into()),
            }
        );
        assert_eq!(
            read("docker://127.0.0.1:5000/a/redis:7"),
            Reference::Registry(Remote {
                host: "127.0.0.1:5000".into(),
                repository: "a/redis".into(),
                version: "7".into(),
            })
        );
    }

    #[test]
    fn what_is_printed_is_read_again() {
        let texts = [
            "oci:x:y",
            "oci-archive:/x.tar",
            "docker-archive:x.tar:a/b:c",
            "docker://h/a:latest",
            "redis:latest",
            "127.0.0.1:5000/redis:7",
        ];
        for text in texts {
            assert_eq!(read(text).to_string(), text);
        }
    }

    #[test]
    fn a_name_without_tag_is_the_latest() {
        let name: Name = "127.0.0.1:5000/db/redis".parse().unwrap();
        assert_eq!(name.as_str(), "127.0.0.1:5000/db/redis:latest");
        assert_eq!(name.short(), "redis");
        let ends_with = |text: &str| name.ends_with(&text.parse().unwrap());
        assert!(ends_with("redis") && ends_with("db/redis:latest"));
        assert!(!ends_with("dis") && !ends_with("redis:7"));
        for wrong in [
            "",
            "a b",
            "../x",
            "/etc",
            "a//b",
            "a:",
            "oci:",
            "docker:x",
            "docker://x",
        ] {
            assert!(wrong.parse::<Reference>().is_err(), "{wrong:?}");
        }
    }
}
