//! Pages of files: what is read, written and mapped is one, whatever comes between.

use std::path::Path;

use crate::Test;
use crate::build::{self, Link};
use crate::disks::{Image, start};
use crate::guest::{BOOT_PATIENCE, Setup};
use crate::status::expect_status;
use crate::volume::Folder;

const MODEL: &str = "tests/harness/file_model.c";

/// The tests, for one CPU and for several.
pub const TESTS: &[Test] = &[
    (
        "a file on ext4 agrees with a model, whichever way it is reached",
        |setup| on_ext4(setup, "4096", "256M", MODELS),
    ),
    (
        "a file on ext4 with small blocks agrees with a model",
        |setup| on_ext4(setup, "1024", "256M", MODELS),
    ),
    (
        "a file of the host agrees with a model, whichever way it is reached",
        of_the_host,
    ),
];

/// Two at once; then the disk is mounted anew.
const MODELS: &str = "
/program /tmp/m/one 1 400 & /program /tmp/m/two 2 400; wait $!
cmp /tmp/m/one /tmp/one.model; cmp /tmp/m/two /tmp/two.model
umount /tmp/m; e2fsck -fn /dev/vda > /tmp/log 2>&1 || { cat /tmp/log; exit 1; }
mount -t ext4 /dev/vda /tmp/m
cmp /tmp/m/one /tmp/one.model; cmp /tmp/m/two /tmp/two.model; umount /tmp/m";

fn on_ext4(setup: &Setup, block: &str, memory: &str, script: &str) -> Result<(), String> {
    let program = build::c_linked(Path::new(MODEL), Link::StaticMusl)?;
    let disk = Image::new(&format!("cached-{block}-{memory}"), 512 << 20)?;
    disk.run("mke2fs", &["-q", "-F", "-t", "ext4", "-b", block])?;
    let add = format!("{}:/program", program.display());
    let script = format!("set -e\nmkdir /tmp/m; mount -t ext4 /dev/vda /tmp/m\n{script}");
    let flags = ["--memory", memory, "--add", &add, &disk.flag("")];
    expect_status(&start(setup, &flags, &script)?.wait(BOOT_PATIENCE)?, 0)?;
    disk.run("e2fsck", &["-fn"])
}

fn of_the_host(setup: &Setup) -> Result<(), String> {
    let program = build::c_linked(Path::new(MODEL), Link::StaticMusl)?;
    let folder = Folder::new("cached-host")?;
    let volume = format!("{}:/volume", folder.0.display());
    let program = program.to_string_lossy();
    let args = [
        "--net",
        "none",
        "-v",
        &volume,
        &program,
        "/volume/file",
        "3",
        "1500",
    ];
    expect_status(&setup.start(&args)?.wait(BOOT_PATIENCE)?, 0)
}
