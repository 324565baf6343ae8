//! Files: what snoop writes it reads, and filters choose from them.

use std::path::PathBuf;
use std::process::{Command, Output};

/// Three packets as another sniffer kept them: two UDP datagrams on loopback, to ports 53 and
/// 123, and an ARP question; classic pcap, Ethernet.
fn classic() -> Vec<u8> {
    let mut file = Vec::new();
    file.extend(0xa1b2_c3d4_u32.to_le_bytes());
    file.extend([2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    file.extend(65_535_u32.to_le_bytes());
    file.extend(1_u32.to_le_bytes());
    for (second, packet) in [udp(53), arp(), udp(123)].iter().enumerate() {
        file.extend((second as u32 + 100).to_le_bytes());
        file.extend(250_000_u32.to_le_bytes());
        file.extend((packet.len() as u32).to_le_bytes());
        file.extend((packet.len() as u32).to_le_bytes());
        file.extend(packet);
    }
    file
}

fn udp(port: u8) -> Vec<u8> {
    let mut packet = vec![0; 12];
    packet.extend([8, 0, 0x45, 0, 0, 28, 0, 0, 0, 0, 64, 17, 0, 0]);
    packet.extend([127, 0, 0, 1, 127, 0, 0, 1, 0x30, 0x39, 0, port, 0, 8, 0, 0]);
    packet
}

fn arp() -> Vec<u8> {
    let mut packet = vec![0xff; 6];
    packet.extend([2, 0, 0, 0, 0, 1, 8, 6, 0, 1, 8, 0, 6, 4, 0, 1]);
    packet.extend([2, 0, 0, 0, 0, 1, 10, 0, 0, 1, 0, 0, 0, 0, 0, 0, 10, 0, 0, 2]);
    packet
}

fn snoop(args: &[&str]) -> Output {
    let program = env!("CARGO_BIN_EXE_snoop");
    Command::new(program).args(args).output().expect("it runs")
}

fn place(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name)
}

fn lines(output: &Output) -> Vec<String> {
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8_lossy(&output.stdout);
    text.lines().map(str::to_string).collect()
}

#[test]
fn a_file_of_another_sniffer_is_shown() {
    let file = place("classic.pcap");
    std::fs::write(&file, classic()).expect("it is written");
    let file = file.to_string_lossy();
    let shown = lines(&snoop(&["-i", &file]));
    assert_eq!(shown.len(), 3);
    assert!(
        shown[0].ends_with("127.0.0.1 -> 127.0.0.1    UDP D=53 S=12345 LEN=8"),
        "{shown:?}"
    );
    assert!(shown[1].contains("1.00000"));
    assert_eq!(lines(&snoop(&["-i", &file, "-c", "2"])).len(), 2);
}

#[test]
fn an_expression_chooses_packets() {
    let file = place("chosen.pcap");
    std::fs::write(&file, classic()).expect("it is written");
    let file = file.to_string_lossy();
    assert_eq!(
        lines(&snoop(&["-i", &file, "udp", "and", "port", "123"])).len(),
        1
    );
    assert_eq!(lines(&snoop(&["-i", &file, "arp"])).len(), 1);
    let refused = snoop(&["-i", &file, "port", "port"]);
    assert!(!refused.status.success());
    let said = String::from_utf8_lossy(&refused.stderr);
    assert!(
        said.starts_with("snoop: the expression is no filter:"),
        "{said}"
    );
}

#[test]
fn what_snoop_keeps_it_shows_again() {
    let (file, kept) = (place("before.pcap"), place("after.pcapng"));
    std::fs::write(&file, classic()).expect("it is written");
    let (file, kept) = (file.to_string_lossy(), kept.to_string_lossy());
    assert!(lines(&snoop(&["-i", &file, "-o", &kept, "udp"])).is_empty());
    let shown = lines(&snoop(&["-i", &kept, "-t", "a"]));
    assert_eq!(shown.len(), 2);
    assert_eq!(shown, lines(&snoop(&["-i", &file, "-t", "a", "udp"])));
}

#[test]
fn what_is_no_file_of_packets_is_refused() {
    let file = place("none.pcap");
    std::fs::write(&file, "nothing of the kind, but long enough for a header").expect("written");
    for name in [&*file.to_string_lossy(), "/no/such/file"] {
        let refused = snoop(&["-i", name]);
        assert!(!refused.status.success());
        let said = String::from_utf8_lossy(&refused.stderr);
        assert!(said.starts_with(&format!("snoop: {name}: ")), "{said}");
    }
}
