//! The kernel's command line: keys and percent-encoded values, split by spaces.
//!
//! A value keeps every printable ASCII character except space, `%`, those that the key's own
//! format uses as separators, and those before which GRUB puts a backslash; each other byte
//! is written as `%` and two hexadecimal digits (RFC 3986, section 2.1).

use std::fmt::Write;

use crate::machine::FolderServer;

/// A command line under construction.
#[derive(Clone, Debug, Default)]
pub struct CommandLine(String);

impl CommandLine {
    /// An empty command line.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds `key=value`.
    pub fn set(mut self, key: &str, value: &str) -> Self {
        self.add(key, &encode(value, ""));
        self
    }

    /// Adds `mount9p=TAG:/guest/path[:ro]`, or `mountvirtiofs=` if virtiofsd serves the folder; colons in the path are
    /// encoded.
    pub fn mount_folder(
        mut self,
        server: FolderServer,
        tag: &str,
        guest: &str,
        read_only: bool,
    ) -> Self {
        let access = if read_only { ":ro" } else { "" };
        let value = format!("{}:{}{access}", encode(tag, ":"), encode(guest, ":"));
        let key = match server {
            FolderServer::NineP => "mount9p",
            FolderServer::Virtiofsd => "mountvirtiofs",
        };
        self.add(key, &value);
        self
    }

    /// Adds `mountdisk=UUID:/guest/path[:ro]`; colons in the path are encoded.
    pub fn mount_disk(mut self, uuid: &str, guest: &str, read_only: bool) -> Self {
        let access = if read_only { ":ro" } else { "" };
        let value = format!("{uuid}:{}{access}", encode(guest, ":"));
        self.add("mountdisk", &value);
        self
    }

    /// Adds `mounttmpfs=OPTIONS:/guest/path`; colons in both are encoded.
    pub fn mount_tmpfs(mut self, options: &str, guest: &str) -> Self {
        let value = format!("{}:{}", encode(options, ":"), encode(guest, ":"));
        self.add("mounttmpfs", &value);
        self
    }

    fn add(&mut self, key: &str, encoded: &str) {
        let space = if self.0.is_empty() { "" } else { " " };
        // Writing to a String cannot fail.
        let _ = write!(self.0, "{space}{key}={encoded}");
    }

    /// The finished text.
    pub fn into_string(self) -> String {
        self.0
    }
}

fn encode(value: &str, separators: &str) -> String {
    let mut encoded = String::with_capacity(value.len());
    for byte in value.bytes() {
        let plain = byte.is_ascii_graphic() && !matches!(byte, b'%' | b'"' | b'\'' | b'\\');
        if plain && !separators.as_bytes().contains(&byte) {
            encoded.push(char::from(byte));
        } else {
            let _ = write!(encoded, "%{byte:02x}");
        }
    }
    encoded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_split_by_spaces_and_values_hold_none() {
        let line = CommandLine::new()
            .set("init", "/bin/my prog")
            .set("ip", "10.0.2.15/24,10.0.2.2");
        assert_eq!(
            line.into_string(),
            "init=/bin/my%20prog ip=10.0.2.15/24,10.0.2.2"
        );
    }

    #[test]
    fn what_a_loader_would_quote_is_encoded() {
        let line = CommandLine::new().set("init", "/it's\\\"so\"");
        assert_eq!(line.into_string(), "init=/it%27s%5c%22so%22");
    }

    #[test]
    fn a_colon_in_a_mounted_path_is_not_a_separator() {
        let line = CommandLine::new()
            .mount_folder(FolderServer::NineP, "v0", "/data:x", true)
            .mount_folder(FolderServer::Virtiofsd, "v1", "/b", false);
        assert_eq!(
            line.into_string(),
            "mount9p=v0:/data%3ax:ro mountvirtiofs=v1:/b"
        );
        let line = CommandLine::new().mount_disk("1-2", "/a:b", false);
        assert_eq!(line.into_string(), "mountdisk=1-2:/a%3ab");
    }
}
