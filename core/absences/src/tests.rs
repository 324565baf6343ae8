extern crate std;

use std::format;
use std::string::String;
use std::vec::Vec;

use super::*;

fn paths(table: &Absences) -> Vec<String> {
    let text = |path: &[u8]| String::from_utf8_lossy(path).into_owned();
    table.paths().map(text).collect()
}

#[test]
fn each_path_is_noted_once_in_the_order_of_its_first_miss() {
    let mut table = Absences::new();
    for path in ["/etc/b", "/etc/a", "/etc/b", "/etc/a/"] {
        table.miss(1, path.as_bytes());
    }
    assert_eq!(paths(&table), ["/etc/b", "/etc/a"]);
}

#[test]
fn a_search_that_finds_its_name_leaves_nothing_and_does_not_come_back() {
    let mut table = Absences::new();
    for _ in 0..2 {
        table.miss(1, b"/usr/local/bin/sh");
        table.miss(1, b"/usr/bin/sh");
        assert_eq!(table.searched() & !bit_of(b"sh"), 0);
        table.find(1, b"/bin/sh");
        assert_eq!(paths(&table), [""; 0]);
        assert_eq!(table.searched(), 0);
    }
}

#[test]
fn another_name_ends_a_search_and_another_threads_find_does_not_count() {
    let mut table = Absences::new();
    table.miss(1, b"/a/x");
    table.find(2, b"/b/x");
    assert_eq!(paths(&table), ["/a/x"]);
    table.miss(1, b"/a/y");
    table.find(1, b"/b/x");
    table.find(1, b"/b/z");
    assert_eq!(paths(&table), ["/a/x", "/a/y"]);
    table.find(1, b"/b/y");
    assert_eq!(paths(&table), ["/a/x"]);
}

#[test]
fn a_bit_is_that_of_the_last_name() {
    assert_eq!(bit_of(b"/a/strict.pm"), bit_of(b"strict.pm"));
    assert_eq!(bit_of(b"/usr/x/"), bit_of(b"/y/x"));
    assert_ne!(bit_of(b"/a"), bit_of(b"/b"));
    for odd in [&b""[..], b"/", b"//"] {
        assert_eq!(bit_of(odd).count_ones(), 1);
    }
}

#[test]
fn what_is_the_machines_own_is_not_noted() {
    let mut table = Absences::new();
    for path in ["/proc/9/stat", "/tmp", "/var/run/x", "relative", "", "/"] {
        table.miss(1, path.as_bytes());
    }
    table.miss(1, b"/tmpfiles");
    assert_eq!(paths(&table), ["/tmpfiles"]);
    assert_eq!(table.unnoted(), 0);
}

#[test]
fn a_flood_is_bounded_by_folder_by_count_and_by_bytes() {
    let mut table = Absences::new();
    for number in 0..10_000 {
        table.miss(1, format!("/a/{number}").as_bytes());
    }
    assert_eq!(paths(&table).len(), PATHS_OF_FOLDER_MAX);
    for number in 0..10_000 {
        table.miss(1, format!("/{number}/x").as_bytes());
    }
    assert_eq!(paths(&table).len(), PATHS_MAX);
    assert_eq!(
        table.unnoted(),
        20_000 - PATHS_MAX as u64,
        "each that has no room"
    );
    let mut table = Absences::new();
    for number in 0..100 {
        let long = "y".repeat(200);
        table.miss(1, format!("/{number}/{long}").as_bytes());
    }
    let bytes: usize = table.paths().map(<[u8]>::len).sum();
    assert!(bytes <= TEXT_BYTES_MAX);
    assert!(table.unnoted() > 0);
    table.miss(1, &[b'/'; TEXT_BYTES_MAX + 2]);
    table.miss(1, "/z".repeat(TEXT_BYTES_MAX).as_bytes());
}

#[test]
fn a_program_that_serves_is_not_listened_to_for_ever() {
    let mut table = Absences::new();
    for _ in 1..HEARD_MAX {
        table.miss(1, b"/etc/localtime");
    }
    assert!(!table.is_over());
    table.miss(1, b"/etc/localtime");
    assert!(table.is_over());
    assert_eq!(paths(&table), ["/etc/localtime"]);
}

#[test]
fn finds_beside_a_search_that_stays_open_are_not_listened_to_for_ever() {
    let mut table = Absences::new();
    table.miss(1, b"/etc/localtime");
    (1..HEARD_MAX).for_each(|_| table.find(2, b"/srv/localtime"));
    assert!(table.is_over());
    assert_eq!(paths(&table), ["/etc/localtime"]);
}
