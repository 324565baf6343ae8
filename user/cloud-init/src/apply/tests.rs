//! Settings applied beneath a folder.

use std::env;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::PathBuf;
use std::process;

use super::*;
use crate::settings::{Keys, WriteFile};

/// A root with a user who is whoever runs the test.
struct Root(PathBuf);

impl Root {
    fn new(name: &str) -> Self {
        let root = env::temp_dir().join(format!("sietch-apply-{name}-{}", process::id()));
        fs::create_dir_all(root.join("etc")).expect("a folder");
        let is = fs::metadata(&root).expect("made");
        let (uid, gid) = (is.uid(), is.gid());
        let users = format!("root:x:{uid}:{gid}::/root:/bin/sh\nme:x:{uid}:{gid}::/home/me:\n");
        fs::write(root.join("etc/passwd"), users).expect("written");
        fs::write(root.join("etc/group"), format!("us:x:{gid}:\n")).expect("written");
        Self(root)
    }

    fn add_server(&self) {
        fs::create_dir_all(self.0.join("usr/sbin")).expect("a folder");
        fs::write(self.0.join("usr/sbin/sshd"), "").expect("written");
    }

    fn text(&self, path: &str) -> String {
        fs::read_to_string(self.0.join(path)).unwrap_or_default()
    }

    fn mode(&self, path: &str) -> u32 {
        let is = fs::metadata(self.0.join(path)).expect("there");
        is.permissions().mode() & 0o7777
    }
}

impl Drop for Root {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn keys(user: Option<&str>, keys: &[&str]) -> Keys {
    Keys {
        user: user.map(Into::into),
        keys: keys.iter().map(ToString::to_string).collect(),
    }
}

fn file(path: &str, content: &str) -> WriteFile {
    WriteFile {
        path: path.into(),
        content: content.into(),
        mode: 0o640,
        owner: Some("me:us".into()),
        is_appended: false,
    }
}

#[test]
fn keys_are_only_where_a_server_reads_them_and_only_their_user_does() {
    let root = Root::new("keys");
    let wanted = keys(None, &["a", "b"]);
    keys::add(&root.0, &wanted).expect("nothing to do");
    assert!(!root.0.join("root").exists());
    root.add_server();
    keys::add(&root.0, &wanted).expect("added");
    keys::add(&root.0, &keys(Some("me"), &["c"])).expect("added");
    assert_eq!(root.text("root/.ssh/authorized_keys"), "a\nb\n");
    assert_eq!(root.text("home/me/.ssh/authorized_keys"), "c\n");
    assert_eq!(root.mode("root/.ssh"), 0o700);
    // The user goes through these himself.
    assert_eq!(
        [root.mode("home"), root.mode("home/me")].map(|mode| mode & 0o111),
        [0o111; 2]
    );
    fs::write(root.0.join("root/.ssh/authorized_keys"), "z").expect("written");
    keys::add(&root.0, &wanted).expect("added");
    assert_eq!(root.text("root/.ssh/authorized_keys"), "z\na\nb\n");
    assert_eq!(root.mode("root/.ssh/authorized_keys"), 0o600);
}

#[test]
fn a_user_whom_the_image_has_not_is_an_error() {
    let root = Root::new("nobody");
    let why = keys::add(&root.0, &keys(Some("ubuntu"), &[])).expect_err("no such user");
    assert_eq!(why.to_string(), "the image has no ubuntu");
}

#[test]
fn files_get_content_owner_and_permissions_and_folders_above() {
    let root = Root::new("files");
    files::write(&root.0, &file("/a/b/c", "one\n")).expect("written");
    let mut more = file("/a/b/c", "two\n");
    more.is_appended = true;
    files::write(&root.0, &more).expect("written");
    assert_eq!(root.text("a/b/c"), "one\ntwo\n");
    assert_eq!(root.mode("a/b/c"), 0o640);
    files::write(&root.0, &file("/a/b/c", "x")).expect("written");
    assert_eq!(root.text("a/b/c"), "x");
}

#[test]
fn a_file_for_an_owner_whom_the_image_has_not_is_for_nobody_else() {
    let root = Root::new("owner");
    let mut wanted = file("/a/secret", "s");
    wanted.owner = Some("ubuntu:ubuntu".into());
    assert!(files::write(&root.0, &wanted).is_err());
    assert_eq!(root.mode("a/secret"), 0o600);
}

#[test]
fn no_file_is_written_by_a_path_that_climbs() {
    let root = Root::new("climbs");
    assert!(files::write(&root.0, &file("/a/../../x", "")).is_err());
    assert!(files::write(&root.0, &file("x", "")).is_err());
}
