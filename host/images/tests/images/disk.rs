//! The disk that an image becomes.

use std::io::Write;

use crate::support::{Layer, Layout, debugfs, expect_clean};
use tar::EntryType;

/// Bytes that do not repeat, and a hole between them.
fn large() -> Vec<u8> {
    let mut bytes: Vec<u8> = (0..3_000_000u32)
        .map(|at| (at.wrapping_mul(2_654_435_761) >> 24) as u8)
        .collect();
    bytes.extend(vec![0; 5 << 20]);
    bytes.extend(b"the end");
    bytes
}

fn lower() -> Layer {
    Layer::new()
        .folder("bin/")
        .file("./bin/it", b"program")
        .file(
            "etc/passwd",
            b"root:x:0:0::/root:/bin/sh\nredis:x:101:102::/data:/bin/sh\n",
        )
        .file("etc/gone", b"gone")
        .file("large", &large())
        .symlink("sh", "bin/it")
        .entry(EntryType::Fifo, "pipe", "", b"")
}

fn upper() -> Layer {
    let long = "n/".repeat(60);
    Layer::new()
        .file("etc/.wh.gone", b"")
        .hard_link("bin/second", "bin/it")
        .pax("SCHILY.xattr.user.colour", "blue")
        .file("painted", b"x")
        .pax("mtime", "1234567890.5")
        .file("timed", b"x")
        .pax("path", &format!("{long}deep"))
        .file("short", b"deep")
}

#[test]
fn layers_become_one_file_system_with_owners_that_we_are_not() {
    let layout = Layout::of(vec![lower(), upper()]);
    let root = layout.root().unwrap();
    let disk = root.path();
    expect_clean(disk);
    let stat = |path: &str| debugfs(disk, &format!("stat {path}"));
    let it = stat("/bin/it");
    assert!(it.contains("User:   101   Group:   102"), "{it}");
    assert!(
        it.contains("Mode:  0640") && it.contains("Links: 2"),
        "{it}"
    );
    assert!(it.contains("mtime: 0x3b9aca00"), "{it}");
    assert!(stat("/bin").contains("Mode:  0750"));
    assert!(stat("/pipe").contains("Type: FIFO"));
    assert!(stat("/sh").contains("Fast link dest: \"bin/it\""));
    assert!(
        stat("/timed").contains("0x499602d2:77359400"),
        "{}",
        stat("/timed")
    );
    assert_eq!(debugfs(disk, "cat /bin/second"), "program");
    assert!(debugfs(disk, "ea_get /painted user.colour").contains("blue"));
    assert_eq!(
        debugfs(disk, &format!("cat /{}deep", "n/".repeat(60))),
        "deep"
    );
    assert!(!debugfs(disk, "ls -p /etc").contains("gone"));
    for place in [
        "dev",
        "proc",
        "sys",
        "run",
        "tmp",
        "etc/hostname",
        "etc/resolv.conf",
    ] {
        assert!(stat(place).contains("Inode:"), "{place}");
    }
    assert!(stat("/tmp").contains("Mode:  01777"));
    assert!(!debugfs(disk, "ls -p /").contains("lost+found"));
    let copy = layout.folder.0.join("copy");
    debugfs(disk, &format!("dump /large {}", copy.display()));
    assert!(std::fs::read(copy).unwrap() == large());
    assert_eq!(root.account("redis").unwrap().home, "/data");
    assert_eq!(root.owner("/bin").unwrap(), (101, 102));
    assert_eq!(root.owner("/none").unwrap(), (0, 0));
    assert!(
        root.account("nobody")
            .unwrap_err()
            .to_string()
            .contains("no user nobody")
    );
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), Default::default());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn zstd(bytes: &[u8]) -> Vec<u8> {
    ruzstd::encoding::compress_to_vec(bytes, ruzstd::encoding::CompressionLevel::Fastest)
}

#[test]
fn layers_may_be_compressed_in_either_way() {
    let layout = Layout::new();
    let (lower, upper) = (lower().bytes(), upper().bytes());
    let layers = [(lower.clone(), gzip(&lower)), (upper.clone(), zstd(&upper))];
    layout.index(&[layout.image(&layers)]);
    let root = layout.root().unwrap();
    expect_clean(root.path());
    assert_eq!(debugfs(root.path(), "cat /bin/second"), "program");
}

#[test]
fn thousands_of_files_and_names_that_are_long_find_room() {
    let mut layer = Layer::new();
    for number in 0..6000 {
        layer = layer.file(&format!("many/{number:080}"), b"");
    }
    for number in 0..1500 {
        layer = layer
            .folder(&format!("d/{number}/"))
            .file(&format!("d/{number}/f"), b"x");
    }
    let layout = Layout::of(vec![layer]);
    let root = layout.root().unwrap();
    expect_clean(root.path());
    assert_eq!(debugfs(root.path(), "cat /d/1499/f"), "x");
}

#[test]
fn an_archive_without_its_end_is_read_as_far_as_it_goes() {
    let mut archive = Layer::new().file("a", b"x").file("b", b"the last").bytes();
    archive.truncate(512 * 3 + 8);
    let layout = Layout::new();
    layout.index(&[layout.image(&[(archive.clone(), archive)])]);
    let root = layout.root().unwrap();
    expect_clean(root.path());
    assert_eq!(debugfs(root.path(), "cat /b"), "the last");
}

#[test]
fn the_same_image_is_the_same_disk_and_is_made_once() {
    let layout = Layout::of(vec![lower()]);
    let first = layout.root().unwrap();
    let made = std::fs::metadata(first.path()).unwrap().modified().unwrap();
    let second = layout.root().unwrap();
    assert_eq!(first.uuid(), second.uuid());
    assert_eq!(
        std::fs::metadata(second.path())
            .unwrap()
            .modified()
            .unwrap(),
        made
    );
}
