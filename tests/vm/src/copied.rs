//! Files that are copied into a machine and out of it (`sietch cp`), and its processes (`sietch top`).

use std::fs;
use std::io::Write;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::Test;
use crate::guest::{BOOT_PATIENCE, Guest, Setup, sietch, state_folder};
use crate::lifecycle::{expect, said};
use crate::status::expect_status;

/// The tests.
pub const TESTS: &[Test] = &[
    (
        "files are copied into a machine and out of it as they are, and processes listed, without a tool in it",
        to_and_fro,
    ),
    (
        "a copy that is cut or refused leaves what was there, and nothing beside it",
        cut,
    ),
];

const PATIENCE: Duration = Duration::from_secs(60);
const POLL: Duration = Duration::from_millis(50);
/// More than all windows and buffers hold.
const LARGE_BYTES: usize = 3 << 20;
/// With `--long`.
const HUGE_BYTES: usize = 1 << 30;

fn machine(setup: &Setup, name: &str, memory: &str) -> Result<Guest, String> {
    let script = "trap 'exit 9' TERM; echo ready; while :; do sleep 1; done";
    let flags = ["--net", "none", "--name", name, "-m", memory];
    let program = ["busybox", "sh", "-c", script];
    let guest = setup.start(&[&flags[..], &program].concat())?;
    guest.expect("ready", BOOT_PATIENCE)?;
    Ok(guest)
}

fn cp(args: &[&str]) -> Result<(), String> {
    said(sietch().arg("cp").args(args), 0).map(drop)
}

/// Fails unless `cp` fails with that sentence.
fn refused(args: &[&str], words: &str) -> Result<(), String> {
    expect(&[&["cp"], args].concat(), 125, &[words])
}

fn ask(name: &str, script: &str) -> Result<String, String> {
    let line = ["exec", name, "busybox", "sh", "-c", script];
    said(sietch().args(line), 0).map(|text| text.trim().to_string())
}

/// A new folder of this run.
fn folder(name: &str) -> Result<PathBuf, String> {
    let path = state_folder().join(name);
    let made = fs::create_dir_all(&path);
    made.map_err(|error| error.to_string()).map(|()| path)
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap_or_default()
}

fn bytes(count: usize) -> Vec<u8> {
    (0..count as u32).map(|at| (at / 7) as u8).collect()
}

/// A tree with all that a copy has to keep.
fn tree(at: &Path) -> std::io::Result<()> {
    let deep = at
        .join("a")
        .join("long name, with blanks".repeat(8))
        .join("c");
    fs::create_dir_all(&deep)?;
    fs::create_dir(at.join("empty"))?;
    fs::write(deep.join("large"), bytes(LARGE_BYTES))?;
    fs::write(at.join("none"), b"")?;
    fs::write(at.join("run"), b"#!/bin/sh\n")?;
    fs::hard_link(at.join("run"), at.join("same"))?;
    symlink("run", at.join("link"))?;
    symlink("/nowhere/at/all", at.join("dangling"))?;
    let mode =
        |name: &str, mode| fs::set_permissions(at.join(name), fs::Permissions::from_mode(mode));
    mode("run", 0o751)?;
    mode("none", 0o600)?;
    mode("empty", 0o1555)?;
    for number in 0..200 {
        fs::write(at.join(format!("a/file{number}")), number.to_string())?;
    }
    Ok(())
}

/// What two trees must have in common: names, kinds, modes, times, texts, how many names a file has.
fn described(at: &Path) -> Result<Vec<String>, String> {
    let failed = |error: std::io::Error| format!("{}: {error}", at.display());
    let mut lines = Vec::new();
    let mut folders = vec![at.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).map_err(failed)? {
            let path = entry.map_err(failed)?.path();
            let file = fs::symlink_metadata(&path).map_err(failed)?;
            let content = match file.file_type() {
                kind if kind.is_symlink() => fs::read_link(&path).map(|to| format!("{to:?}")),
                kind if kind.is_dir() => Ok(String::new()),
                _ => fs::read(&path).map(|bytes| {
                    let sum = bytes.iter().fold(0_u64, |sum, &byte| {
                        sum.wrapping_mul(31).wrapping_add(u64::from(byte))
                    });
                    format!("{} {sum:x}", bytes.len())
                }),
            };
            let names = if file.is_dir() { 0 } else { file.nlink() };
            let name = path.strip_prefix(at).unwrap_or(&path).to_path_buf();
            let content = content.map_err(failed)?;
            lines.push(format!(
                "{name:?} {:o} {} {names} {content}",
                file.mode(),
                file.mtime()
            ));
            if file.is_dir() {
                folders.push(path);
            }
        }
    }
    lines.sort();
    Ok(lines)
}

#[track_caller]
fn same(one: &Path, other: &Path) -> Result<(), String> {
    let (one, other) = (described(one)?, described(other)?);
    let differs = one.iter().zip(&other).find(|(one, other)| one != other);
    match (differs, one.len() == other.len()) {
        (None, true) => Ok(()),
        (differs, _) => Err(format!(
            "{} and {} files: {differs:?}",
            one.len(),
            other.len()
        )),
    }
}

fn to_and_fro(setup: &Setup) -> Result<(), String> {
    let name = "copied";
    let memory = if setup.is_long() { "2G" } else { "128M" };
    let guest = machine(setup, name, memory)?;
    let there = |path: &str| format!("{name}:{path}");
    let host = folder("copied-host")?;
    let source = host.join("source");
    tree(&source).map_err(|error| error.to_string())?;
    // A folder that is not there becomes one; into one that is there it goes under its name.
    cp(&[text(&source), &there("/tree")])?;
    cp(&["-a", text(&source), &there("/tree")])?;
    let owners = ask(
        name,
        "stat -c %u:%g:%a /tree/run /tree/source/none; ls -A /tree | grep -c cp- || true",
    )?;
    if owners.lines().next() != Some("0:0:751") || !owners.ends_with('0') {
        return Err(format!("{owners:?}"));
    }
    ask(name, "rm -r /tree/source")?;
    let back = host.join("back");
    cp(&[&there("/tree"), text(&back)])?;
    same(&source, &back)?;
    // What is in a folder, by a tar in both directions.
    let out = sietch().args(["cp", &there("/tree/."), "-"]).output();
    let tar = out.map_err(|error| error.to_string())?.stdout;
    ask(name, "mkdir /by-tar")?;
    let mut child = sietch()
        .args(["cp", "-", &there("/by-tar")])
        .stdin(Stdio::piped())
        .spawn()
        .map_err(|error| error.to_string())?;
    let mut stdin = child.stdin.take().ok_or("no input")?;
    stdin.write_all(&tar).map_err(|error| error.to_string())?;
    drop(stdin);
    let status = child.wait().map_err(|error| error.to_string())?;
    if !status.success() {
        return Err(format!("a tar from standard input: {status}"));
    }
    let again = folder("copied-host/again")?;
    cp(&[&there("/by-tar/."), text(&again)])?;
    same(&source, &again)?;
    // Links themselves, and what they lead to.
    cp(&[&there("/tree/link"), text(&host.join("link"))])?;
    cp(&["-L", &there("/tree/link"), text(&host.join("followed"))])?;
    let is_link =
        |name: &str| fs::symlink_metadata(host.join(name)).is_ok_and(|file| file.is_symlink());
    if !is_link("link") || is_link("followed") {
        return Err("a link is followed, or is not with -L".into());
    }
    // A file whose size nobody knows before.
    cp(&[&there("/proc/uptime"), text(&host.join("uptime"))])?;
    let uptime = fs::read_to_string(host.join("uptime")).unwrap_or_default();
    if !uptime.contains('.') {
        return Err(format!("/proc/uptime has {uptime:?}"));
    }
    listed(name)?;
    if setup.is_long() {
        huge(name, &host)?;
    }
    expect_status(&guest.stop()?, 9)
}

/// A file that is larger than what client, session and kernel may hold.
fn huge(name: &str, host: &Path) -> Result<(), String> {
    let (large, back) = (host.join("huge"), host.join("huge-back"));
    fs::write(&large, bytes(HUGE_BYTES)).map_err(|error| error.to_string())?;
    let (to, there) = (text(&large), format!("{name}:/tmp/huge"));
    for line in [["cp", to, &there], ["cp", &there, text(&back)]] {
        let mut timed = Command::new("/usr/bin/time");
        timed
            .args(["-f", "%M"])
            .arg(sietch().get_program())
            .args(line);
        timed.envs(
            sietch()
                .get_envs()
                .filter_map(|(key, value)| Some((key, value?))),
        );
        let said = said(&mut timed, 0)?;
        let most = said
            .trim()
            .lines()
            .last()
            .and_then(|line| line.parse::<u64>().ok());
        // Of which the program itself is the most.
        if most.is_none_or(|kib| kib > 64 << 10) {
            return Err(format!("{line:?} takes {said:?} KiB"));
        }
    }
    let is_same = fs::read(large)
        .ok()
        .is_some_and(|sent| fs::read(back).is_ok_and(|came| came == sent));
    match is_same {
        true => Ok(()),
        false => Err("a gigabyte comes back as another one".into()),
    }
}

fn listed(name: &str) -> Result<(), String> {
    let listed = said(sietch().args(["top", name, "-o", "pid,user,time,args"]), 0)?;
    let first = listed.lines().nth(1).unwrap_or_default();
    if !first.trim_start().starts_with("1 ") || !first.contains("busybox sh -c") {
        return Err(format!("process 1 is not in {listed}"));
    }
    let json = said(sietch().args(["top", "--output", "json", name]), 0)?;
    let fields = ["\"pid\": 1,", "\"comm\": \"busybox\"", "\"uid\": 0,"];
    if let Some(field) = fields.iter().find(|field| !json.contains(**field)) {
        return Err(format!("no {field} in {json}"));
    }
    expect(&["top", name, "--forest"], 125, &["has no --forest"])
}

fn cut(setup: &Setup) -> Result<(), String> {
    let name = "copied-cut";
    let guest = machine(setup, name, "64M")?;
    let there = |path: &str| format!("{name}:{path}");
    let host = folder("cut-host")?;
    let (small, large) = (host.join("file"), host.join("large/file"));
    fs::create_dir_all(host.join("large")).map_err(|error| error.to_string())?;
    fs::write(&small, b"before").map_err(|error| error.to_string())?;
    // More than the machine has.
    fs::write(&large, vec![1; 80 << 20]).map_err(|error| error.to_string())?;
    ask(name, "mkdir /d; ln -s / /d/out")?;
    cp(&[text(&small), &there("/d/file")])?;
    refused(&[text(&large), &there("/d/file")], "no room for it")?;
    refused(&[text(&small), &there("/missing/")], "no folder")?;
    refused(&[text(&small), &there("/proc/new")], "did not take")?;
    refused(
        &[text(&host), &there("/d/file")],
        "a folder cannot take its place",
    )?;
    refused(&[&there("/nothing"), text(&host)], "has no /nothing")?;
    refused(&[text(&small), text(&host)], "NAME:PATH")?;
    refused(
        &[text(&small), "no-machine:/"],
        "No machine is called no-machine",
    )?;
    // A link in the machine is not a way out of the folder that was named.
    fs::create_dir_all(host.join("tree/out")).map_err(|error| error.to_string())?;
    fs::write(host.join("tree/out/file"), b"x").map_err(|error| error.to_string())?;
    refused(
        &[&format!("{}/.", text(&host.join("tree"))), &there("/d")],
        "no folder",
    )?;
    let mut child = sietch()
        .args(["cp", "-", &there("/d")])
        .stdin(Stdio::piped())
        .spawn()
        .map_err(|error| error.to_string())?;
    let mut stdin = child.stdin.take().ok_or("no input")?;
    let sent = stdin.write_all(&tar_of_large_file());
    sent.map_err(|error| error.to_string())?;
    ask(name, "until ls -A /d | grep -q cp-; do sleep 0.1; done")?;
    let killed = child.kill().and_then(|()| child.wait());
    killed.map_err(|error| error.to_string())?;
    let deadline = Instant::now() + PATIENCE;
    loop {
        let left = ask(name, "ls -A /d | grep -v out; cat /d/file")?;
        let is_clean = left.starts_with("file\nbefore") && !left.contains("cp-");
        if is_clean {
            break;
        }
        if Instant::now() > deadline {
            return Err(format!("left in /d: {left:?}"));
        }
        thread::sleep(POLL);
    }
    expect_status(&guest.stop()?, 9)
}

/// The beginning of a tar with a file of 1 GiB, as far as 256 KiB.
fn tar_of_large_file() -> Vec<u8> {
    let mut header = [0; 512];
    let mut put = |at: usize, text: &[u8]| header[at..at + text.len()].copy_from_slice(text);
    put(0, b"file");
    put(100, b"0000644\0");
    put(108, b"0000000\0");
    put(116, b"0000000\0");
    put(124, b"10000000000\0");
    put(136, b"00000000000\0");
    put(148, b"        ");
    put(156, b"0");
    put(257, b"ustar\x0000");
    let sum: u32 = header.iter().map(|&byte| u32::from(byte)).sum();
    header[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    [&header[..], &[5; 256 << 10]].concat()
}
