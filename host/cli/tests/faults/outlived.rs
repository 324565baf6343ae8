//! What is started beside a machine and lives longer: it keeps nobody from the machine's volumes and image.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::process::Command;
use std::thread;

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
            "#!/bin/sh\n[ \"$1\" = --version ] && exit\nsleep 600 >/dev/null 2>&1 &\necho $$ $! >>{}\nwait\n",
            passts.record().display()
        );
        let passt = passts.0.join("passt");
        fs::write(&passt, text).expect("a script");
        fs::set_permissions(&passt, Permissions::from_mode(0o755)).expect("made executable");
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

    /// Where programs are looked for, this one first.
    fn search_path(&self) -> String {
        let path = std::env::var("PATH").unwrap_or_default();
        format!("{}:{path}", self.0.display())
    }
}

impl Drop for Passts {
    fn drop(&mut self) {
        let left = self.numbers().into_iter().map(|(_, left)| left);
        // One that has ended is as good.
        let _ = Command::new("kill").arg("-9").args(left).status();
    }
}

/// Listens where passt would, once the machine's folder is there. Who was there before it is as good.
fn listen_for_passt(scene: &Scene) -> thread::JoinHandle<UnixListener> {
    let folder = scene.0.join("sietch/m");
    thread::spawn(move || {
        wait_until("the machine has a folder", || folder.join("owner").exists());
        let socket = folder.join("net.sock");
        let _ = fs::remove_file(&socket);
        UnixListener::bind(socket).expect("bound")
    })
}

#[test]
fn a_passt_that_outlives_its_machine_holds_neither_volume_nor_image() {
    let scene = Scene::new("faults-passt");
    scene.let_machines_run();
    let passts = Passts::new(scene.0.join("bin"));
    let path = passts.search_path();
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
            let passt = listen_for_passt(&scene);
            let port = qemu::free_tcp_port().expect("a port");
            let forward = format!("127.0.0.1:{port}:80");
            sietch(&[
                "run", "-d", "--accel", "tcg", "--name", "m", "-p", &forward, "-v", "v:/data",
                "img",
            ]);
            drop(passt.join().expect("it listened"));
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
