//! What the fixtures do not show: facts, headers before the payload, the bound on searches.

use bpf::{ATTRIBUTES_MAX, Fact, Facts, Packet, Program, RawInstruction};

use crate::{Nothing, program};

/// Answers each question with a number of its own.
struct Numbered;

const FACTS: [(u32, Fact); 13] = [
    (0, Fact::Protocol),
    (4, Fact::PacketType),
    (8, Fact::Interface),
    (20, Fact::Mark),
    (24, Fact::Queue),
    (28, Fact::HardwareType),
    (32, Fact::FlowHash),
    (36, Fact::Cpu),
    (44, Fact::VlanTag),
    (48, Fact::VlanPresent),
    (52, Fact::PayloadOffset),
    (56, Fact::Random),
    (60, Fact::VlanProtocol),
];

impl Facts for Numbered {
    fn fact(&mut self, fact: Fact) -> u32 {
        let (offset, _) = FACTS
            .iter()
            .find(|(_, known)| *known == fact)
            .expect("a fact");
        offset + 1
    }
}

const RETURN_A: (u16, u8, u8, u32) = (0x16, 0, 0, 0);

fn run(instructions: &[(u16, u8, u8, u32)], packet: &Packet) -> u32 {
    let program = Program::check(&program(instructions)).expect("legal");
    program.run(packet, &mut Numbered)
}

#[test]
fn each_fact_answers_its_own_offset() {
    for (offset, _) in FACTS {
        for size in [0x20, 0x28, 0x30] {
            let ask = (size, 0, 0, 0xffff_f000 + offset);
            assert_eq!(run(&[ask, RETURN_A], &Packet::new(&[], 0, 0)), offset + 1);
        }
    }
}

#[test]
fn a_socket_without_link_headers_reaches_them_by_their_own_offsets() {
    let parts: [&[u8]; 2] = [b"ETHERHEADER..I", b"Pv4"];
    let packet = Packet::new(&parts, 14, 13);
    let byte = |offset| run(&[(0x30, 0, 0, offset), RETURN_A], &packet);
    assert_eq!(packet.len(), 3);
    assert_eq!(byte(0), u32::from(b'P'));
    assert_eq!(byte(0xffe0_0000), u32::from(b'E'), "SKF_LL_OFF");
    assert_eq!(byte(0xfff0_0000), u32::from(b'I'), "SKF_NET_OFF");
    assert_eq!(byte(3), 0, "beyond the end");
    assert_eq!(byte(0x8000_0000), 0, "before everything");
    let across = run(&[(0x28, 0, 0, 0xffe0_000d), RETURN_A], &packet);
    assert_eq!(across, u32::from_be_bytes([0, 0, b'I', b'P']));
}

#[test]
fn offsets_beyond_the_packet_are_cut() {
    let packet = Packet::new(&[b"abc"], 9, 9);
    assert!(packet.is_empty());
    assert_eq!(run(&[(0x80, 0, 0, 0), RETURN_A], &packet), 0);
}

#[test]
fn a_run_ends_when_it_has_looked_at_too_many_attributes() {
    // 1024 attributes of four bytes; each search for a type that is not there sees all.
    let packet = [4, 0, 1, 0].repeat(1024);
    let search = |times: usize| {
        let mut code = program(&[(0x01, 0, 0, 2)]);
        for _ in 0..times {
            code.extend(program(&[(0x00, 0, 0, 0), (0x20, 0, 0, 0xffff_f00c)]));
        }
        code.extend(program(&[(0x06, 0, 0, 7)]));
        let program = Program::check(&code).expect("legal");
        program.run(&Packet::new(&[&packet], 0, 0), &mut Nothing)
    };
    assert_eq!(ATTRIBUTES_MAX, 4 * 1024);
    assert_eq!(search(4), 7);
    assert_eq!(search(5), 0);
}

#[test]
fn an_instruction_is_read_as_c_lays_it_out() {
    let read = RawInstruction::from_bytes([0x15, 0, 2, 3, 4, 0, 0, 0x80]);
    assert_eq!(
        (read.code, read.yes, read.no, read.k),
        (0x15, 2, 3, 0x8000_0004)
    );
}
