//! What is started beside a machine: where it lives longer it keeps nobody from the machine's volumes and image, and passt ends
//! with the machine.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::image::Image;
use crate::killed_machines::wait_until;
use crate::scene::Scene;
use crate::succeed;

/// A folder with a passt that leaves a process behind; all of them end with this.
struct Passts(PathBuf);

impl Passts {
    fn new(folder: PathBuf) -> Self {
        fs::create_dir_all(&folder).expect("a folder");
        let passts = Self(folder);
        let text = format!(
            "#!/bin/sh\n[ \"$1\" = --version ] && exit\nsleep 600 >/dev/null 2>&1 &\necho $$ $! >>{}\n\
             while [ \"$1\" != --pid ]; do shift; done\necho $$ >\"$2\"\nwait\n",
            passts.record().display()
        );
        write_passt(&passts.0, &text);
        passts
    }

    fn record(&self) -> PathBuf {
        self.0.join("outliving")
    }

    /// The numbers of all that were started, each with that of the process that it left.
    fn numbers(&self) -> Vec<(String, String)> {
        let record = fs::read_to_string(self.record()).unwrap_or_default();
        let pairs = record.lines().filter_map(|line| line.split_once(' '));
        pairs
            .map(|(passt, left)| (passt.into(), left.into()))
            .collect()
    }
}

/// Makes a script the passt of that folder.
fn write_passt(folder: &Path, text: &str) {
    let passt = folder.join("passt");
    fs::write(&passt, text).expect("a script");
    fs::set_permissions(&passt, Permissions::from_mode(0o755)).expect("made executable");
}

/// Where programs are looked for, that folder first.
fn search_path(folder: &Path) -> String {
    let path = std::env::var("PATH").unwrap_or_default();
    format!("{}:{path}", folder.display())
}

impl Drop for Passts {
    fn drop(&mut self) {
        let left = self.numbers().into_iter().map(|(_, left)| left);
        // One that has ended is as good.
        let _ = Command::new("kill").arg("-9").args(left).status();
    }
}

#[test]
fn a_passt_that_outlives_its_machine_holds_neither_volume_nor_image() {
    let scene = Scene::new("faults-passt");
    scene.let_machines_run();
    let passts = Passts::new(scene.0.join("bin"));
    let path = search_path(&passts.0);
    let sietch = |words: &[&str]| {
        let mut command = scene.sietch(words);
        succeed(command.env("PATH", &path))
    };
    let layout = scene.0.join("img");
    Image::new(2000).write(&layout);
    let layout = format!("oci:{}", layout.display());
    for _ in 0..2 {
        sietch(&["pull", &layout]);
        sietch(&["volume", "create", "--size", "16M", "v"]);
        for _ in 0..2 {
            let port = qemu::free_tcp_port().expect("a port");
            let forward = format!("127.0.0.1:{port}:80");
            sietch(&[
                "run", "-d", "--accel", "tcg", "--name", "m", "-p", &forward, "-v", "v:/data",
                "img",
            ]);
            sietch(&["stop", "-t", "0", "m"]);
            sietch(&["rm", "m"]);
        }
        sietch(&["volume", "rm", "v"]);
        sietch(&["rmi", "img"]);
    }
    let numbers = passts.numbers();
    assert_eq!(numbers.len(), 4);
    for (passt, left) in numbers {
        let stat = fs::read_to_string(format!("/proc/{left}/stat"));
        let stat = stat.expect("it is there still");
        // Its group, which is passt's: a terminal's Ctrl-C is for neither.
        let group = stat
            .rsplit_once(") ")
            .and_then(|(_, fields)| fields.split(' ').nth(2));
        assert_eq!(group, Some(passt.as_str()));
    }
}

#[test]
fn passt_hears_first_of_the_machines_station_and_ends_with_qemu_also_if_we_were_killed() {
    let scene = Scene::new("faults-wire");
    scene.let_machines_run();
    let (bin, heard) = (scene.0.join("bin"), scene.0.join("heard"));
    fs::create_dir_all(&bin).expect("a folder");
    // What it reads ends, or is reset, when nobody has the other end any more. bash(1): a descriptor may have two digits.
    let text = format!(
        "#!/bin/bash\n[ \"$1\" = --version ] && exit\n[ \"$1\" = --fd ] && [ \"$2\" -gt 2 ] || exit 1\n\
         fd=$2\nwhile [ \"$1\" != --pid ]; do shift; done\necho $$ >\"$2\"\n\
         cat <&\"$fd\" >{0}.part 2>/dev/null\nmv {0}.part {0}\n",
        heard.display()
    );
    write_passt(&bin, &text);
    let port = qemu::free_tcp_port().expect("a port");
    let forward = format!("127.0.0.1:{port}:80");
    let words = ["run", "-d", "--accel", "tcg", "--name", "m", "-p", &forward];
    let mut run = scene.sietch(&[&words[..], &["true"]].concat());
    succeed(run.env("PATH", search_path(&bin)));
    let settings = fs::read(scene.0.join("sietch/m/settings.json")).expect("they are there");
    let settings: Value = serde_json::from_slice(&settings).expect("JSON");
    let session = settings["session_pid"].to_string();
    let killed = Command::new("kill").args(["-9", &session]).status();
    assert!(killed.expect("it starts").success());
    wait_until("passt's input has no end", || heard.exists());
    let frame = fs::read(&heard).expect("it is there");
    let (station, broadcast) = ([0x52, 0x54, 0, 0x12, 0x34, 0x56], [0xff; 6]);
    assert_eq!(frame[..4], [0, 0, 0, 60]);
    assert_eq!(frame[4..16], [broadcast, station].concat());
    assert_eq!(frame.len(), 64);
    succeed(&mut scene.sietch(&["rm", "-f", "m"]));
}
