//! The cache of library paths that ldconfig(8) keeps in `/etc/ld.so.cache`.
//!
//! The format has no manual page; this is glibc's `cache_file_new` with the magic
//! `glibc-ld.so.cache1.1`: a count of entries, then entries of 24 bytes whose offsets
//! count from the magic. Older files put another table in front of it.

use std::collections::HashMap;
use std::path::PathBuf;

const MAGIC: &[u8] = b"glibc-ld.so.cache1.1";
const HEADER_BYTES: usize = 48;
const ENTRY_BYTES: usize = 24;
/// Flags of an entry: a library for ELF libc6 on x86-64.
const FLAGS_X86_64: u32 = 0x0303;

/// Library names and the paths where they are.
#[derive(Debug, Default)]
pub struct LdCache(HashMap<String, PathBuf>);

impl LdCache {
    /// Reads this host's cache; an unreadable one is empty.
    pub fn of_host() -> Self {
        std::fs::read("/etc/ld.so.cache")
            .map(|bytes| Self::parse(&bytes))
            .unwrap_or_default()
    }

    /// Reads the bytes of a cache file.
    pub fn parse(bytes: &[u8]) -> Self {
        let start = bytes
            .windows(MAGIC.len())
            .position(|window| window == MAGIC);
        Self(
            start
                .and_then(|start| parse_table(&bytes[start..]))
                .unwrap_or_default(),
        )
    }

    /// Where the library `name` is.
    pub fn find(&self, name: &str) -> Option<&PathBuf> {
        self.0.get(name)
    }
}

fn parse_table(table: &[u8]) -> Option<HashMap<String, PathBuf>> {
    let count = word(table, MAGIC.len())? as usize;
    let entries = table
        .get(HEADER_BYTES..)?
        .chunks_exact(ENTRY_BYTES)
        .take(count);
    let mut paths = HashMap::new();
    for entry in entries {
        if word(entry, 0)? == FLAGS_X86_64 {
            let name = text(table, word(entry, 4)?)?;
            // The first entry of a name is the one that the loader takes.
            paths
                .entry(name)
                .or_insert(PathBuf::from(text(table, word(entry, 8)?)?));
        }
    }
    Some(paths)
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

fn text(table: &[u8], offset: u32) -> Option<String> {
    let text = table
        .get(offset as usize..)?
        .split(|&byte| byte == 0)
        .next()?;
    String::from_utf8(text.to_vec()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_lead_to_paths() {
        let mut bytes = b"old table".to_vec();
        let strings_at = (HEADER_BYTES + ENTRY_BYTES) as u32;
        bytes.extend_from_slice(MAGIC);
        bytes.extend_from_slice(&1u32.to_le_bytes());
        bytes.resize(9 + HEADER_BYTES, 0);
        for field in [FLAGS_X86_64, strings_at, strings_at + 5, 0, 0, 0] {
            bytes.extend_from_slice(&field.to_le_bytes());
        }
        bytes.extend_from_slice(b"li.1\0/lib/li.1\0");
        let cache = LdCache::parse(&bytes);
        assert_eq!(cache.find("li.1"), Some(&PathBuf::from("/lib/li.1")));
        assert_eq!(cache.find("other"), None);
    }

    #[test]
    fn something_else_is_an_empty_cache() {
        assert!(LdCache::parse(b"nonsense").0.is_empty());
        assert!(LdCache::parse(MAGIC).0.is_empty());
    }
}
