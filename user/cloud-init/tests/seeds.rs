//! Seeds as people make them: ISO 9660 by `xorriso` in the place of `genisoimage`, FAT by mtools.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{self, Command};

use cloud_init::TEXT_BYTES_MAX;
use cloud_init::reader::settings_of;
use cloud_init::seed::{self, Seed};

const META_DATA: &str = "instance-id: i-1\nlocal-hostname: web\n";
const USER_DATA: &str = "#cloud-config\nfqdn: web-1.example\nssh_authorized_keys: [ssh-rsa A]\n";
const NETWORK: &str = "version: 2\nethernets: {eth0: {addresses: [10.0.0.5/24]}}\n";

/// A folder of the test's own, with a seed's files.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let folder = env::temp_dir().join(format!("sietch-seed-{name}-{}", process::id()));
        fs::create_dir_all(&folder).expect("a folder");
        let files = [
            ("meta-data", META_DATA),
            ("user-data", USER_DATA),
            ("network-config", NETWORK),
        ];
        for (name, text) in files {
            fs::write(folder.join(name), text).expect("written");
        }
        Self(folder)
    }

    fn files(&self) -> [PathBuf; 3] {
        ["meta-data", "user-data", "network-config"].map(|name| self.0.join(name))
    }

    /// An ISO with names of these kinds.
    fn iso(&self, label: &str, names: &[&str]) -> PathBuf {
        let disk = self.0.join("seed.iso");
        let mut command = Command::new("xorriso");
        command.args(["-as", "mkisofs", "-quiet", "-volid", label]);
        run(command.args(names).arg("-o").arg(&disk).args(self.files()));
        disk
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn run(command: &mut Command) {
    let output = command.output().expect("`make setup` installs it");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
}

fn expect_seed(disk: &Path) {
    let expected = Seed {
        meta_data: META_DATA.into(),
        user_data: USER_DATA.into(),
        network_config: NETWORK.into(),
    };
    assert_eq!(seed::read(disk).expect("read"), Some(expected));
}

#[test]
fn an_iso_is_read_with_names_of_rock_ridge_or_joliet_or_both() {
    let folder = Folder::new("iso");
    expect_seed(&folder.iso("cidata", &["-rock", "-joliet"]));
    expect_seed(&folder.iso("CIDATA", &["-rock"]));
    expect_seed(&folder.iso("cidata", &["--norock", "-joliet"]));
}

#[test]
fn an_iso_with_another_label_is_no_seed() {
    let folder = Folder::new("other");
    let disk = folder.iso("backup", &["-rock"]);
    assert_eq!(seed::read(&disk).expect("read"), None);
}

#[test]
fn a_fat_disk_is_read_by_its_long_names() {
    let folder = Folder::new("fat");
    let disk = folder.0.join("seed.img");
    fs::write(&disk, vec![0; 2 << 20]).expect("written");
    let mut mformat = Command::new("mformat");
    run(mformat
        .arg("-i")
        .arg(&disk)
        .args(["-v", "CIDATA", "-T", "4096", "-h", "16", "-s", "32", "::"]));
    let mut mcopy = Command::new("mcopy");
    run(mcopy.arg("-i").arg(&disk).args(folder.files()).arg("::"));
    expect_seed(&disk);
}

#[test]
fn a_seed_with_a_text_that_is_too_long_is_read_in_no_part() {
    let folder = Folder::new("long");
    let long = format!("{USER_DATA}# {}\n", "x".repeat(TEXT_BYTES_MAX));
    fs::write(folder.0.join("user-data"), long).expect("written");
    let read = seed::read(&folder.iso("cidata", &["-rock"]));
    let why = read.expect_err("it is too long").to_string();
    assert_eq!(why, "user-data is too long");
}

#[test]
fn a_seed_without_its_files_is_an_error() {
    let folder = Folder::new("names");
    let read = seed::read(&folder.iso("cidata", &["--norock"]));
    let why = read.expect_err("there are no long names").to_string();
    assert_eq!(why, "it has no meta-data and no user-data");
}

#[test]
fn a_disk_of_zeros_is_no_seed() {
    let folder = Folder::new("zeros");
    let disk = folder.0.join("zeros");
    fs::write(&disk, vec![0; 1 << 20]).expect("written");
    assert_eq!(seed::read(&disk).expect("read"), None);
}

#[test]
fn the_users_name_counts_more_than_the_clouds() {
    let settings = settings_of(&Seed {
        meta_data: META_DATA.into(),
        user_data: USER_DATA.into(),
        network_config: String::new(),
    });
    assert_eq!(settings.host_name.as_deref(), Some("web-1.example"));
    assert_eq!(settings.keys[0].keys, ["ssh-rsa A"]);
    assert_eq!(settings.network, None);
    assert_eq!(settings.notes, [""; 0]);
}

#[test]
fn files_are_decoded_and_what_cannot_be_done_is_named() {
    let user_data = "#cloud-config
hostname: 'not a name'
packages: [vim]
write_files:
- {path: /etc/a, content: aGkK, encoding: b64, permissions: '0600', owner: 'root:root'}
- {path: relative, content: x}
- {path: /etc/b, content: x, encoding: gz}
- {path: /etc/c, content: !!binary aGkK}
";
    let settings = settings_of(&Seed {
        user_data: user_data.into(),
        ..Seed::default()
    });
    let [file] = settings.files.as_slice() else {
        panic!("one file: {settings:?}");
    };
    assert_eq!((file.content.as_slice(), file.mode), (&b"hi\n"[..], 0o600));
    assert_eq!(settings.host_name, None);
    assert_eq!(settings.notes.len(), 5, "{:?}", settings.notes);
}

#[test]
fn permissions_are_octal_with_quotes_and_without() {
    let forms = ["'0640'", "0640", "640", "0o640", "'0o640'", "!!str 0640"];
    for form in forms {
        let text = format!("#cloud-config\nwrite_files: [{{path: /etc/a, permissions: {form}}}]");
        let settings = settings_of(&Seed {
            user_data: text,
            ..Seed::default()
        });
        let modes = settings.files.iter().map(|file| file.mode);
        assert_eq!(modes.collect::<Vec<_>>(), [0o640], "{form}: {settings:?}");
    }
}

#[test]
fn scripts_and_nonsense_are_notes() {
    let deep = format!("#cloud-config\n{}", "[".repeat(200_000));
    for user_data in [
        deep.as_str(),
        "#!/bin/sh\nreboot\n",
        "#cloud-config-archive\n- {content: x}\n",
        "#cloud-config\n{",
        "Content-Type: multipart/mixed",
    ] {
        let settings = settings_of(&Seed {
            user_data: user_data.into(),
            ..Seed::default()
        });
        assert_eq!(settings.notes.len(), 1, "{user_data:.80}");
    }
}
