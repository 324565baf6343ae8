//! What the tools make of arguments, and how they say so.

use admin::{Device, Kernel};
use linkctl::Request;

use crate::Host;

#[test]
fn help_names_every_command_and_is_no_complaint() {
    let host = Host::new();
    let help = host.prints("dladm --help");
    for command in [
        "show-link",
        "show-phys",
        "show-vnic",
        "create-vnic",
        "delete-vnic",
        "show-vlan",
        "create-vlan",
        "delete-vlan",
        "show-etherstub",
        "create-etherstub",
        "delete-etherstub",
        "show-linkprop",
        "set-linkprop",
        "reset-linkprop",
        "restore",
    ] {
        assert!(help.contains(command), "{command}");
        assert_ne!(host.prints(&format!("dladm {command} --help")), "");
    }
    let help = host.prints("flowadm --help");
    for command in [
        "add-flow",
        "remove-flow",
        "show-flow",
        "set-flowprop",
        "reset-flowprop",
        "show-flowprop",
    ] {
        assert!(help.contains(command), "{command}");
    }
}

#[test]
fn arguments_that_make_no_sense_exit_with_2_and_change_nothing() {
    let host = Host::new();
    for line in [
        "dladm bake-cake",
        "dladm create-vnic vnic1",
        "dladm create-vnic -l net0",
        "dladm create-vlan -l net0",
        "dladm set-linkprop net0",
        "dladm show-phys -m -H",
        "dladm show-linkprop -c",
        "flowadm add-flow -l net0 f1",
        "flowadm remove-flow",
        "flowadm remove-flow -l net0 f1",
        "flowadm set-flowprop f1",
    ] {
        let (code, out, err) = host.run(line);
        assert_eq!((code, out.as_str()), (2, ""), "{line}");
        assert!(!err.is_empty(), "{line}");
    }
    assert_eq!(host.prints("dladm show-link -p -o link"), "net0\n");
}

/// A device that says the same to everything.
struct Parrot(Vec<u8>);

impl std::io::Write for Parrot {
    fn write(&mut self, request: &[u8]) -> std::io::Result<usize> {
        Ok(request.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl std::io::Read for Parrot {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        into[..self.0.len()].copy_from_slice(&self.0);
        Ok(self.0.len())
    }
}

#[test]
fn an_answer_that_is_none_is_an_error_and_no_panic() {
    for answer in [&b""[..], b"\x02", b"\x01\xff", b"\x01\x00\x00"] {
        let mut device = Device::new(Parrot(answer.to_vec()));
        let said = device.call(&Request::Links { from: 0 });
        assert_eq!(said, Err("the kernel speaks another protocol".into()));
    }
}

#[test]
fn the_programs_give_help_without_a_kernel_and_say_which_device_they_lack() {
    for program in [env!("CARGO_BIN_EXE_dladm"), env!("CARGO_BIN_EXE_flowadm")] {
        let run = |argument: &str| {
            let output = std::process::Command::new(program).arg(argument).output();
            output.expect("the program starts")
        };
        let help = run("--help");
        assert!(help.status.success() && !help.stdout.is_empty() && help.stderr.is_empty());
        assert_eq!(run("bake-cake").status.code(), Some(2));
    }
    if !std::path::Path::new(linkctl::DEVICE).exists() {
        let output = std::process::Command::new(env!("CARGO_BIN_EXE_dladm"))
            .arg("show-link")
            .output();
        let output = output.expect("the program starts");
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1));
        assert!(
            said.starts_with("dladm: /dev/linkctl cannot be opened: "),
            "{said}"
        );
    }
}
