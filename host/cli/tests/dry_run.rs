//! `sietch run --dry-run`: what is printed starts the machine by itself, also with other monitors, and what these have not is a
//! sentence.

mod scene;

use std::path::Path;

use scene::Scene;
use serde_json::Value;

const TAP: [&str; 4] = ["--net", "tap=tap7", "--ip", "10.9.0.2/24,10.9.0.1"];

/// What a dry run writes to both streams; it must succeed.
fn printed(scene: &Scene, flags: &[&str]) -> (String, String) {
    let args = [&["run", "--dry-run", "--accel", "tcg"], flags, &["sh"]].concat();
    let output = scene.sietch(&args).output().expect("sietch starts");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(output.status.success(), "{}", text(&output.stderr));
    (text(&output.stdout), text(&output.stderr))
}

fn refusal(scene: &Scene, flags: &[&str]) -> String {
    let args = [&["run", "--dry-run"], flags, &["sh"]].concat();
    let output = scene.sietch(&args).output().expect("sietch starts");
    assert!(!output.status.success(), "{flags:?}");
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// The word behind a flag.
fn word<'a>(line: &'a str, flag: &str) -> &'a str {
    let mut words = line.split_whitespace();
    words.find(|word| *word == flag).expect("the flag is there");
    words.next().expect("a word behind it")
}

#[test]
fn the_image_is_there_and_the_program_is_at_the_terminal() {
    let scene = Scene::new("dry-qemu");
    let (line, _) = printed(&scene, &["-p", "8080:80"]);
    assert!(Path::new(word(&line, "-initrd")).exists(), "{line}");
    assert!(line.contains("hostfwd=tcp:"), "{line}");
    let (same, _) = printed(&scene, &["-p", "8080:80", "--vmm", "qemu"]);
    assert_eq!(word(&same, "-initrd"), word(&line, "-initrd"));
}

#[test]
fn firecracker_gets_a_file_with_the_same_machine() {
    let scene = Scene::new("dry-firecracker");
    let flags = ["--vmm", "firecracker", "--cpus", "2", "-m", "300M"];
    let more = ["--mac-address", "02:00:00:00:00:07"];
    let (text, notes) = printed(&scene, &[&flags[..], &TAP, &more].concat());
    let json = text.split_once("<<'END'\n").expect("a file").1;
    let (json, rest) = json.split_once("\nEND\n").expect("its end");
    let file: Value = serde_json::from_str(json).expect("JSON");
    assert_eq!(file["machine-config"]["vcpu_count"], 2);
    assert_eq!(file["machine-config"]["mem_size_mib"], 300);
    let card = &file["network-interfaces"][0];
    assert_eq!(card["host_dev_name"], "tap7");
    assert_eq!(card["guest_mac"], "02:00:00:00:00:07");
    let boot = &file["boot-source"];
    let line = boot["boot_args"].as_str().expect("a command line");
    assert!(line.contains("ip=10.9.0.2/24"), "{line}");
    let image = boot["initrd_path"].as_str().expect("a path");
    assert!(Path::new(image).exists());
    assert!(rest.starts_with("firecracker --no-api --config-file "));
    assert_eq!(notes.lines().count(), 1, "{notes}");
}

#[test]
fn cloud_hypervisor_gets_a_line_with_the_same_machine() {
    let scene = Scene::new("dry-cloud-hypervisor");
    let disk = scene.0.join("disk.img");
    std::fs::write(&disk, [0; 512]).expect("a disk");
    let disk = format!("{},ro", disk.display());
    let flags = ["--vmm", "cloud-hypervisor", "--disk", &disk];
    let (line, _) = printed(&scene, &[&flags[..], &TAP].concat());
    assert!(line.starts_with("cloud-hypervisor --kernel "), "{line}");
    assert_eq!(word(&line, "--net"), "tap=tap7");
    assert!(
        word(&line, "--disk").ends_with("disk.img,readonly=on"),
        "{line}"
    );
    assert!(Path::new(word(&line, "--initramfs")).exists());
}

#[test]
fn what_another_monitor_has_not_is_said() {
    let scene = Scene::new("dry-lacks");
    let (text, notes) = printed(&scene, &["--vmm", "firecracker", "-p", "8080:80"]);
    assert!(text.contains("\"network-interfaces\": []"), "{text}");
    assert!(notes.contains("-p leads nowhere"), "{notes}");
    for (flags, what) in [
        (["-v", "/etc:/x:ro"], "virtio-9p"),
        (["--nic", "igb"], "Intel's cards"),
        (["--nodes", "2"], "NUMA"),
    ] {
        for vmm in ["firecracker", "cloud-hypervisor"] {
            let said = refusal(&scene, &[&["--vmm", vmm], &flags[..]].concat());
            assert!(said.contains(what), "{said}");
            assert_eq!(said.lines().count(), 1, "{said}");
        }
    }
    let said = refusal(&scene, &["--vmm", "xen"]);
    assert!(said.contains("firecracker"), "{said}");
}

#[test]
fn a_folder_that_virtiofsd_serves_is_called_for_and_its_daemon_named() {
    let scene = Scene::new("dry-virtiofs");
    let (line, notes) = printed(&scene, &["-v", "/etc:/x:ro,virtiofs"]);
    assert!(line.contains("mountvirtiofs=volume0:/x:ro"), "{line}");
    assert!(line.contains(",chardev=volume0,tag=volume0"), "{line}");
    let daemon = "virtiofsd --xattr --shared-dir /etc --socket-path ";
    assert!(notes.contains(daemon), "{notes}");
    assert!(notes.contains(" --readonly"), "{notes}");
    let said = refusal(&scene, &["--iommu", "-v", "/etc:/x:virtiofs"]);
    assert!(said.contains("IOMMU"), "{said}");
}

#[test]
fn another_monitor_is_for_dry_runs() {
    let scene = Scene::new("dry-not");
    let output = scene
        .sietch(&["run", "--vmm", "firecracker", "sh"])
        .output();
    let output = output.expect("sietch starts");
    assert!(String::from_utf8_lossy(&output.stderr).contains("--dry-run"));
}
