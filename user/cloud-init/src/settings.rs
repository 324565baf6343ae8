//! What is to be applied, in types.

use crate::network_config::Network;

/// Bytes of a host name (sethostname(2)).
const HOST_NAME_BYTES_MAX: usize = 64;

/// Everything that a machine is told.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Settings {
    /// The instance's number.
    pub instance_id: Option<String>,
    /// The machine's name, and its domain behind the first dot.
    pub host_name: Option<String>,
    /// Who may log in with which keys.
    pub keys: Vec<Keys>,
    /// Files.
    pub files: Vec<WriteFile>,
    /// The network; DHCP goes on if there is none.
    pub network: Option<Network>,
    /// What is asked for and not done, each a sentence without its full stop.
    pub notes: Vec<String>,
}

/// Public keys of a user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Keys {
    /// Root, if nobody is named.
    pub user: Option<String>,
    /// Lines of authorized_keys(5).
    pub keys: Vec<String>,
}

/// An item of `write_files`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WriteFile {
    /// Where.
    pub path: String,
    /// What is in it.
    pub content: Vec<u8>,
    /// Its permissions.
    pub mode: u32,
    /// `USER:GROUP`, by names.
    pub owner: Option<String>,
    /// Whether the content comes behind what is there.
    pub is_appended: bool,
}

impl Settings {
    /// Sets the machine's name, if it is one.
    pub(crate) fn set_host_name(&mut self, name: Option<String>) {
        let Some(name) = name.filter(|name| !name.is_empty()) else {
            return;
        };
        match is_host_name(&name) {
            true => self.host_name = Some(name),
            false => self.notes.push(format!("{name:?} is no host name")),
        }
    }

    /// Adds keys: of each only the first line, so that no key hides another.
    pub(crate) fn add_keys(&mut self, user: Option<&str>, keys: Vec<String>) {
        let lines = keys.iter().filter_map(|key| key.trim().lines().next());
        let keys: Vec<String> = lines.map(Into::into).collect();
        // A user without keys must be there all the same.
        if !keys.is_empty() || user.is_some() {
            let user = user.map(Into::into);
            self.keys.push(Keys { user, keys });
        }
    }
}

/// Labels of letters, digits and hyphens (RFC 1123, section 2.1).
fn is_host_name(name: &str) -> bool {
    let is_label = |label: &str| {
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
        !label.is_empty() && !label.starts_with('-') && label.bytes().all(is_plain)
    };
    name.len() <= HOST_NAME_BYTES_MAX && name.split('.').all(is_label)
}
