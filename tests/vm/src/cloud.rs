//! Disks for clouds (`sietch build --format raw`) that are told who they are: by a seed on a second disk, by a
//! metadata service, or by nobody.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::Test;
use crate::build::{self, Link};
use crate::guest::{BOOT_PATIENCE, Guest, Setup, sietch, state_folder, write_file};

/// The tests.
pub const TESTS: &[Test] = &[
    (
        "a disk starts its program where nobody tells it anything",
        starts_alone,
    ),
    (
        "a disk takes name, address, keys and files from a seed of ISO 9660",
        |setup| takes_from_seed(setup, iso),
    ),
];
/// Those of the long run.
pub const TESTS_LONG: &[Test] = &[
    (
        "a disk takes name, address, keys and files from a seed of FAT",
        |setup| takes_from_seed(setup, fat),
    ),
    (
        "a disk takes its name from a metadata service with tokens",
        takes_from_service,
    ),
    (
        "a disk starts its program whatever a seed holds",
        starts_in_any_case,
    ),
];

/// A seed is what a disk asks for by itself.
const SEED: &[&str] = &[];
const PROGRAM: &str = "tests/harness/told.c";
const END: &str = "that is all";
const META_DATA: &str = "instance-id: i-1\nlocal-hostname: web-1.example\n";
const USER_DATA: &str = "#cloud-config
ssh_authorized_keys: [ssh-ed25519 AAAA mine]
write_files:
- {path: /etc/app/setting, content: aGkK, encoding: b64, permissions: '0640'}
";
const NETWORK_CONFIG: &str = "version: 2
ethernets:
  enp1s0:
    match: {macaddress: '52:54:00:12:34:56'}
    addresses: [10.77.0.5/24]
    gateway4: 10.77.0.1
    nameservers: {addresses: [10.77.0.3], search: [example]}
";
/// One with a DHCP server.
const NETWORK: &str = "user,id=n";
const LEASED: &str = "address: eth0 10.0.2.15\n";
/// The network of the metadata service's address.
const SERVICE_NETWORK: &str = "user,id=n,net=169.254.0.0/16,guestfwd=tcp:169.254.169.254:80-cmd:";

fn takes_from_seed(
    setup: &Setup,
    make: fn(&Path, &[PathBuf]) -> Result<PathBuf, String>,
) -> Result<(), String> {
    let files = [
        ("meta-data", META_DATA),
        ("user-data", USER_DATA),
        ("network-config", NETWORK_CONFIG),
    ];
    let said = run(setup, SEED, Some(&seed(&files, make)?), NETWORK)?;
    if said.contains(LEASED) {
        return Err(format!("DHCP goes on: {said}"));
    }
    expect_all(
        &said,
        &[
            "name: web-1\n",
            "variable: web-1\n",
            "process 1 of user 0\n",
            "address: eth0 10.77.0.5\n",
            "/etc/hostname 644 0: web-1\n",
            "/etc/resolv.conf 644 0: nameserver 10.77.0.3\n",
            "/etc/resolv.conf 644 0: search example\n",
            "/etc/app/setting 640 0: hi\n",
            "/root/.ssh/authorized_keys 600 0: ssh-ed25519 AAAA mine\n",
        ],
    )
}

fn takes_from_service(setup: &Setup) -> Result<(), String> {
    let script = write_file("service.sh", SERVICE)?;
    fs::set_permissions(&script, Permissions::from_mode(0o755)).map_err(|why| why.to_string())?;
    let flags = ["--cloud-init", "metadata"];
    let said = run(setup, &flags, None, &format!("{SERVICE_NETWORK}{script}"))?;
    expect_all(&said, &["name: from-metadata\n"])
}

fn starts_alone(setup: &Setup) -> Result<(), String> {
    let said = run(setup, &["--user", "7:8"], None, NETWORK)?;
    expect_all(&said, &["name: told\n", "process 1 of user 7\n"])
}

fn starts_in_any_case(setup: &Setup) -> Result<(), String> {
    // Gigabytes by aliases: the child that reads it ends, and nobody else.
    let text = "x".repeat(100_000);
    let aliases = "*a,".repeat(40_000);
    let large = format!("#cloud-config\na: &a {text}\nb: [{aliases}]\n");
    let files = [("meta-data", META_DATA), ("user-data", &large)];
    let said = run(setup, SEED, Some(&seed(&files, iso)?), NETWORK)?;
    expect_all(&said, &["name: told\n", "was not read to its end"])
}

/// Writes the files and makes a disk of them.
fn seed(
    files: &[(&str, &str)],
    make: fn(&Path, &[PathBuf]) -> Result<PathBuf, String>,
) -> Result<PathBuf, String> {
    let mut paths = Vec::new();
    for (name, text) in files {
        paths.push(PathBuf::from(write_file(&format!("seed/{name}"), text)?));
    }
    make(&state_folder(), &paths)
}

/// As `cloud-localds` makes it.
fn iso(folder: &Path, files: &[PathBuf]) -> Result<PathBuf, String> {
    let disk = folder.join("seed.iso");
    let mut command = Command::new("xorriso");
    command.args(["-as", "mkisofs", "-quiet", "-volid", "cidata"]);
    command.args(["-joliet", "-rock", "-o"]).arg(&disk);
    finish(command.args(files))?;
    Ok(disk)
}

fn fat(folder: &Path, files: &[PathBuf]) -> Result<PathBuf, String> {
    let disk = folder.join("seed.fat");
    fs::write(&disk, vec![0; 2 << 20]).map_err(|why| why.to_string())?;
    let mut command = Command::new("mformat");
    command.arg("-i").arg(&disk);
    command.args(["-v", "CIDATA", "-T", "4096", "-h", "16", "-s", "32", "::"]);
    finish(&mut command)?;
    let mut command = Command::new("mcopy");
    finish(command.arg("-i").arg(&disk).args(files).arg("::"))?;
    Ok(disk)
}

fn finish(command: &mut Command) -> Result<(), String> {
    let output = command.output().map_err(|why| why.to_string())?;
    match output.status.success() {
        true => Ok(()),
        false => Err(String::from_utf8_lossy(&output.stderr).into_owned()),
    }
}

/// Boots the disk of [`PROGRAM`] until it has said all; what it said.
fn run(
    setup: &Setup,
    flags: &[&str],
    seed: Option<&Path>,
    network: &str,
) -> Result<String, String> {
    let disk = image(flags)?;
    let mut qemu = Command::new("qemu-system-x86_64");
    qemu.args(["-nodefaults", "-accel", "tcg", "-cpu", "max"]);
    qemu.args(["-machine", "q35", "-m", "512", "-smp", setup.cpus()]);
    qemu.args(["-display", "none", "-serial", "stdio"]);
    let drive = format!("file={},format=raw,media=disk", disk.display());
    qemu.args(["-drive", &drive]);
    if let Some(seed) = seed {
        let drive = format!(
            "file={},format=raw,if=none,id=seed,readonly=on",
            seed.display()
        );
        qemu.args(["-drive", &drive, "-device", "virtio-blk-pci,drive=seed"]);
    }
    qemu.args(["-netdev", network]);
    qemu.args(["-device", "virtio-net-pci,netdev=n,mac=52:54:00:12:34:56"]);
    let pc = Guest::of(qemu)?;
    pc.expect(END, BOOT_PATIENCE)?;
    // The serial port ends lines as terminals want it.
    Ok(pc.console().replace('\r', ""))
}

/// Builds the disk.
fn image(flags: &[&str]) -> Result<PathBuf, String> {
    let reader = build::cloud_init()?;
    let program = build::c_linked(Path::new(PROGRAM), Link::StaticMusl)?;
    let folder = state_folder();
    fs::create_dir_all(&folder).map_err(|error| format!("{folder:?}: {error}"))?;
    let image = folder.join("told.raw");
    let mut command = sietch();
    command.env("SIETCH_CLOUD_INIT", reader);
    command.args(["build", "--format", "raw"]).args(flags);
    // Whatever is there is a server for keys.
    let server = format!("{}:/usr/sbin/sshd", program.display());
    command.args(["--add", &server, "--output"]).arg(&image);
    command.arg(program);
    command.args(["/etc/hostname", "/etc/resolv.conf", "/etc/app/setting"]);
    finish(command.arg("/root/.ssh/authorized_keys"))?;
    Ok(image)
}

fn expect_all(said: &str, expected: &[&str]) -> Result<(), String> {
    match expected.iter().find(|line| !said.contains(*line)) {
        None => Ok(()),
        Some(line) => Err(format!("`{line}` is missing in: {said}")),
    }
}

/// A metadata service that serves one connection, at its input and output.
const SERVICE: &str = r#"#!/bin/sh
end=$(printf '\r')
read -r method path version
token=
while read -r line && [ "$line" != "$end" ]; do
    case $line in "X-aws-ec2-metadata-token: T"*) token=yes ;; esac
done
answer() { printf 'HTTP/1.1 %s x\r\nContent-Length: %s\r\nConnection: close\r\n\r\n%s' "$1" "${#2}" "$2"; }
case "$method $path $token" in
"PUT /latest/api/token ") answer 200 T ;;
"GET /latest/meta-data/local-hostname yes") answer 200 from-metadata ;;
"GET /latest/meta-data/instance-id yes") answer 200 i-7 ;;
*yes) answer 404 '' ;;
*) answer 401 '' ;;
esac
"#;
