//! Owner, mode, links and times of an inode that keeps them in memory.

use crate::{Change, FileType, Metadata, New, Timestamp};

/// What chmod(2), chown(2), utimes(2) and link(2) change.
pub struct Attributes {
    mode: u32,
    uid: u32,
    gid: u32,
    links: u32,
    accessed: Timestamp,
    modified: Timestamp,
    changed: Timestamp,
    created: Timestamp,
}

impl Attributes {
    /// Of a new inode.
    pub fn new(new: &New<'_>, time: Timestamp) -> Self {
        Self {
            mode: new.mode & 0o7777,
            uid: new.uid,
            gid: new.gid,
            links: if new.kind == FileType::Directory {
                2
            } else {
                1
            },
            accessed: time,
            modified: time,
            changed: time,
            created: time,
        }
    }

    /// The permission bits.
    pub fn mode(&self) -> u32 {
        self.mode
    }

    /// Fills in what stat(2) says.
    pub fn tell(&self, metadata: &mut Metadata) {
        metadata.mode = self.mode;
        metadata.uid = self.uid;
        metadata.gid = self.gid;
        metadata.links = self.links;
        metadata.accessed = self.accessed;
        metadata.modified = self.modified;
        metadata.changed = self.changed;
        metadata.created = self.created;
    }

    /// What a program asked for.
    pub fn change(&mut self, change: &Change) {
        self.mode = change.mode.map_or(self.mode, |mode| mode & 0o7777);
        self.uid = change.uid.unwrap_or(self.uid);
        self.gid = change.gid.unwrap_or(self.gid);
        self.accessed = change.accessed.unwrap_or(self.accessed);
        self.modified = change.modified.unwrap_or(self.modified);
        self.changed = Timestamp::now();
    }

    /// The contents changed now; `links` is added to the number of links.
    pub fn touch(&mut self, links: i32) {
        self.modified = Timestamp::now();
        self.count_link(links);
    }

    /// One of its names came or went.
    pub fn count_link(&mut self, links: i32) {
        self.changed = Timestamp::now();
        self.links = self.links.saturating_add_signed(links);
    }

    /// It was read; with `relative` that is noted once after a change, and once a day.
    pub fn note_read(&mut self, relative: bool) {
        const DAY_S: i64 = 24 * 60 * 60;
        let now = Timestamp::now();
        let is_noted = self.accessed > self.modified.max(self.changed)
            && now.seconds.saturating_sub(self.accessed.seconds) < DAY_S;
        if !relative || !is_noted {
            self.accessed = now;
        }
    }

    /// Something was taken out.
    pub fn read(&mut self) {
        let now = Timestamp::now();
        self.accessed = now;
        self.changed = now;
    }
}
