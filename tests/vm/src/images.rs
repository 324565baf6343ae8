//! Container images (`sietch run oci:FOLDER`), made by Debian's umoci and skopeo of programs of this host.

use std::fs;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::debian_image::{self, Contents};
use crate::guest::{BOOT_PATIENCE, Setup, sietch, state_folder};
use crate::resp::Redis;
use crate::status::{expect_all, expect_status};
use crate::volume::Folder;
use crate::{Test, lifecycle};

/// The tests, for one CPU and for several.
pub const TESTS: &[Test] = &[(
    "Redis answers from its image as the image's user, whichever way the image comes",
    redis,
)];

/// What one CPU more or less changes nothing of.
pub const TESTS_ONCE: &[Test] = &[
    (
        "a program of an image has the environment, folder and user that the image or the line names",
        starts,
    ),
    (
        "an image's health check is asked, and its stop signal asks its program to end",
        heeds,
    ),
];

/// How long a registry takes to listen.
const LISTEN_PATIENCE: Duration = Duration::from_secs(20);
const PASSWD: &str = "root:x:0:0::/root:/bin/sh\nredis:x:999:998::/data:/bin/sh\n";
const REDIS: &str = "/usr/bin/redis-server";
const BUSYBOX: &str = "/bin/busybox";

/// Runs a program of the host; says what it wrote.
fn run(program: &str, args: &[&str]) -> Result<String, String> {
    let output = Command::new(program).args(args).output();
    let Output {
        status,
        stdout,
        stderr,
    } = output.map_err(|error| format!("{program}: {error}"))?;
    match status.success() {
        true => Ok(String::from_utf8_lossy(&stdout).into_owned()),
        false => Err(format!(
            "{program} {args:?}: {}",
            String::from_utf8_lossy(&stderr)
        )),
    }
}

/// What the command writes; it must succeed.
pub(crate) fn said(args: &[&str]) -> Result<String, String> {
    let output = sietch()
        .args(args)
        .output()
        .map_err(|error| error.to_string())?;
    match output.status.success() {
        true => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
        false => Err(format!(
            "{args:?}: {}",
            String::from_utf8_lossy(&output.stderr)
        )),
    }
}

/// A layout with one image of two layers: programs with their libraries, and what lies over them.
fn layout(folder: &Path, program: &str) -> Result<PathBuf, String> {
    let layout = folder.join("img");
    let (path, image) = (
        layout.display().to_string(),
        format!("{}:7", layout.display()),
    );
    let bundle = folder.join("bundle").display().to_string();
    run("umoci", &["init", "--layout", &path])?;
    run("umoci", &["new", "--image", &image])?;
    run("umoci", &["unpack", "--image", &image, &bundle])?;
    let root = folder.join("bundle/rootfs");
    for file in [program, BUSYBOX] {
        plant(&root, file)?;
    }
    let write = |path: &str, text: &str| {
        let path = root.join(path);
        fs::create_dir_all(path.parent().unwrap_or(&root))
            .and_then(|()| fs::write(path, text))
            .map_err(|error| error.to_string())
    };
    write("etc/passwd", PASSWD)?;
    write("etc/gone", "of the lower layer")?;
    write("data/kept", "kept")?;
    write("run/own/file", "as the image has it")?;
    run(
        "umoci",
        &["repack", "--refresh-bundle", "--image", &image, &bundle],
    )?;
    fs::remove_file(root.join("etc/gone")).map_err(|error| error.to_string())?;
    std::os::unix::fs::symlink("busybox", root.join("bin/sh"))
        .map_err(|error| error.to_string())?;
    for path in ["data", "data/kept", "run/own"] {
        let path = root.join(path);
        std::os::unix::fs::chown(path, Some(999), Some(998)).map_err(|error| error.to_string())?;
    }
    run("umoci", &["repack", "--image", &image, &bundle])?;
    Ok(layout)
}

/// Copies a program with its libraries.
fn plant(root: &Path, program: &str) -> Result<(), String> {
    let said = Command::new("ldd").arg(program).output();
    let said = said.map_err(|error| error.to_string())?;
    let said = String::from_utf8_lossy(&said.stdout).into_owned();
    let libraries = said.split_whitespace().filter(|word| word.starts_with('/'));
    for path in libraries.chain([program]) {
        let to = root.join(path.trim_start_matches('/'));
        fs::create_dir_all(to.parent().unwrap_or(root))
            .and_then(|()| fs::copy(path, to))
            .map_err(|error| format!("{path}: {error}"))?;
    }
    Ok(())
}

fn configure(layout: &Path, words: &[&str]) -> Result<(), String> {
    let image = format!("{}:7", layout.display());
    let args = [&["config", "--image", &image], words].concat();
    run("umoci", &args).map(drop)
}

fn redis(setup: &Setup) -> Result<(), String> {
    let folder = Folder::new("image-redis")?;
    let layout = layout(&folder.0, REDIS)?;
    configure(
        &layout,
        &[
            "--config.user=redis",
            "--config.workingdir=/data",
            "--config.entrypoint=redis-server",
            "--config.cmd=--protected-mode",
            "--config.cmd=no",
            "--config.exposedports=6379/tcp",
        ],
    )?;
    let oci = format!("oci:{}:7", layout.display());
    let archive = folder.0.join("saved.tar").display().to_string();
    run(
        "skopeo",
        &[
            "copy",
            "-q",
            &oci,
            &format!("docker-archive:{archive}:db/redis:7"),
        ],
    )?;
    let registry = Registry::start(&folder.0)?;
    let remote = format!("docker://127.0.0.1:{}/redis:7", registry.port);
    run(
        "skopeo",
        &["copy", "-q", "--dest-tls-verify=false", &oci, &remote],
    )?;
    let stored = said(&["pull", &format!("docker-archive:{archive}"), &remote])?;
    let names = ["db/redis:7", remote.trim_start_matches("docker://")];
    if !names.iter().all(|name| stored.contains(name)) {
        return Err(format!("pulled {names:?} and said {stored}"));
    }
    for image in [oci.as_str(), names[0], names[1]] {
        answers(setup, image)?;
    }
    said(&["rmi", "img:7", names[0], names[1]])?;
    let left = fs::read_dir(state_folder().join("sietch/images/blobs/sha256"));
    match left.map_err(|error| error.to_string())?.count() {
        0 => Ok(()),
        count => Err(format!("{count} blobs are left of images that are gone")),
    }
}

/// Redis serves, and writes to where its image is, which no other machine sees.
fn answers(setup: &Setup, image: &str) -> Result<(), String> {
    let (guest, address) = setup.serve(6379, &[image])?;
    guest.expect_answer(address, b"PING\r\n")?;
    let mut redis = Redis::connect(address)?;
    if redis.call(&["EXISTS", "key"])? != "0" {
        return Err("a machine found what another one wrote".into());
    }
    redis.call(&["SET", "key", "value"])?;
    redis.call(&["SAVE"])?;
    expect_status(&guest.stop()?, 0)
}

/// Debian's registry on this host.
struct Registry {
    child: Child,
    port: u16,
}

impl Registry {
    fn start(folder: &Path) -> Result<Self, String> {
        let io = |error: std::io::Error| error.to_string();
        let free = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(io)?;
        let port = free.local_addr().map_err(io)?.port();
        drop(free);
        let settings = folder.join("registry.yml");
        let blobs = folder.join("registry");
        let text = format!(
            "version: 0.1\nstorage:\n  filesystem:\n    rootdirectory: {}\nhttp:\n  addr: 127.0.0.1:{port}\n",
            blobs.display()
        );
        fs::write(&settings, text).map_err(io)?;
        let child = Command::new("docker-registry")
            .arg("serve")
            .arg(&settings)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|error| format!("docker-registry: {error}"))?;
        let registry = Self { child, port };
        registry.expect_to_listen()?;
        Ok(registry)
    }

    fn expect_to_listen(&self) -> Result<(), String> {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, self.port));
        let deadline = Instant::now() + LISTEN_PATIENCE;
        while Instant::now() < deadline {
            let answer = TcpStream::connect(address).and_then(|mut stream| {
                stream.write_all(b"GET /v2/ HTTP/1.0\r\n\r\n")?;
                stream.read(&mut [0; 1])
            });
            if matches!(answer, Ok(1)) {
                return Ok(());
            }
            thread::sleep(Duration::from_millis(50));
        }
        Err("docker-registry does not listen".into())
    }
}

impl Drop for Registry {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill().and_then(|()| self.child.wait());
    }
}

/// As the image says.
const AS_MADE: &str = "set -e
test $(stat -c %u /run/own) = 999; test -e /run/own/file; touch /run/own/new; test $(pwd) = /data; test $A = image; test $HOME = /data; test $(id -u):$(id -g) = 999:998
test ! -e /etc/gone; test $(cat kept) = kept; test $(stat -c %u:%g kept) = 999:998
echo changed > kept; test $(cat kept) = changed; mkdir new; test -d new; test $1 = an
test $(cat /etc/hostname) = boxed; grep -q 'nameserver' /etc/resolv.conf; test -c /dev/null; test -d /proc/self";
/// As the line says.
const AS_TYPED: &str = "set -e
test $(pwd) = /etc; test $A = line; test $(id -u):$(id -g) = 0:998; test $HOME = /root
test $(cat /data/kept) = kept; rm -r /data; test ! -e /data; grep -q redis passwd";

fn starts(setup: &Setup) -> Result<(), String> {
    let folder = Folder::new("image-box")?;
    let layout = layout(&folder.0, BUSYBOX)?;
    configure(
        &layout,
        &[
            "--config.user=redis",
            "--config.workingdir=/data",
            "--config.env=A=image",
            "--config.env=PATH=/bin",
            "--config.entrypoint=sh",
            "--config.entrypoint=-c",
            "--config.cmd=exit 7",
            "--config.volume=/data",
        ],
    )?;
    let image = format!("oci:{}:7", layout.display());
    let ends = |args: &[&str], status| {
        let all = [&["--name", "boxed"], args].concat();
        expect_status(&setup.start(&all)?.wait(BOOT_PATIENCE)?, status)
    };
    ends(&[&image], 7)?;
    ends(&[&image, AS_MADE, "sh", "an"], 0)?;
    let typed = [
        "-e",
        "A=line",
        "-w",
        "/etc",
        "-u",
        "root:998",
        "--entrypoint",
        "/bin/sh",
    ];
    ends(&[&typed[..], &[&image, "-c", AS_TYPED]].concat(), 0)?;
    let nobody = sietch().args(["run", "-u", "nobody", &image]).output();
    let nobody = nobody.map_err(|error| error.to_string())?;
    let complaint = String::from_utf8_lossy(&nobody.stderr).into_owned();
    match complaint.contains("The image has no user nobody") {
        true => said(&["rmi", "img:7"]).map(drop),
        false => Err(format!("`-u nobody` says {complaint}")),
    }
}

/// It is well once there is a file, and ends with 7 by its own signal only.
const HEEDED: &str = r#"{"User": "65534", "StopSignal": "SIGQUIT", "Entrypoint": ["/bin/busybox", "sh", "-c",
    "trap 'echo heard; exit 7' QUIT; echo is up; while :; do sleep 1; done"], "Healthcheck": {"Test": ["CMD", "busybox",
    "test", "-e", "/tmp/well"], "Interval": 1000000000, "Timeout": 20000000000, "Retries": 2}}"#;

fn heeds(setup: &Setup) -> Result<(), String> {
    let folder = Folder::new("image-heeded")?;
    let contents = Contents {
        packages: &["busybox-static"],
        config: HEEDED,
        ..Contents::default()
    };
    let image = debian_image::make(&folder.0.join("heeded"), &contents)?;
    let guest = setup.start(&["--net", "none", &image])?;
    guest.expect("is up", BOOT_PATIENCE)?;
    let end = guest.stop()?;
    expect_status(&end, 7)?;
    expect_all(&end.console, &["heard"])?;
    let name = "heeded-behind";
    let behind = ["-d", "--name", name, "--net", "none", &image];
    lifecycle::said(&mut setup.command(&behind), 0)?;
    wait_for("(unhealthy)")?;
    said(&["exec", name, "busybox", "touch", "/tmp/well"])?;
    wait_for("(healthy)")?;
    said(&["snapshot", name, "well"])?;
    said(&["stop", name])?;
    expect_all(&said(&["wait", name])?, &["7"])?;
    expect_all(&said(&["logs", name])?, &["is up", "heard"])?;
    said(&["rm", name])?;
    // One that goes on from a snapshot is asked as its image wants, too.
    said(&["run", "--from", "well", "-d", "--name", name])?;
    wait_for("(healthy)")?;
    said(&["rm", "-f", name])?;
    said(&["snapshots", "--rm", "well"])?;
    said(&["rmi", "heeded"]).map(drop)
}

/// Waits until `sietch ps` says so of the only machine.
fn wait_for(health: &str) -> Result<(), String> {
    let deadline = Instant::now() + BOOT_PATIENCE;
    loop {
        let machines = said(&["ps"])?;
        match machines.contains(health) {
            true => return Ok(()),
            false if Instant::now() > deadline => {
                return Err(format!("never {health}: {machines}"));
            }
            false => thread::sleep(Duration::from_millis(100)),
        }
    }
}
