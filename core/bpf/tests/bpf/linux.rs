//! What Linux said, by `tests/fixtures/make.py`.

use bpf::{Packet, Program, RawInstruction};

use crate::Nothing;

fn bytes(hex: &str) -> Vec<u8> {
    let digits = |at| u8::from_str_radix(&hex[at..at + 2], 16).expect("hex");
    (0..hex.len()).step_by(2).map(digits).collect()
}

/// One instruction of sixteen digits: `code jt jf k`.
fn instruction(hex: &str) -> RawInstruction {
    let number = |from, to| u32::from_str_radix(&hex[from..to], 16).expect("hex");
    RawInstruction {
        code: number(0, 4) as u16,
        yes: number(4, 6) as u8,
        no: number(6, 8) as u8,
        k: number(8, 16),
    }
}

/// Bytes kept of an Ethernet frame.
fn kept(program: &Program, frame: &[u8]) -> usize {
    let parts = [frame];
    let verdict = program.run(&Packet::new(&parts, 0, 0), &mut Nothing);
    frame.len().min(verdict as usize)
}

#[test]
fn programs_of_tcpdump_keep_the_frames_that_linux_keeps() {
    let text = include_str!("../fixtures/tcpdump.txt");
    let (mut frames, mut checked) = (Vec::new(), 0);
    let mut filters = text.split("\nfilter ");
    for line in filters.next().expect("frames").lines() {
        let (name, hex) = line["frame ".len()..].split_once(' ').expect("a name");
        frames.push((name, bytes(hex)));
    }
    for filter in filters {
        let mut lines = filter.lines();
        let expression = lines.next().expect("an expression");
        let code: Vec<_> = lines
            .next()
            .expect("code")
            .split(' ')
            .map(instruction)
            .collect();
        let program = Program::check(&code).expect(expression);
        let mut kept_by_linux =
            lines.map(|line| line["keeps ".len()..].split_once(' ').expect("a length"));
        let mut next = kept_by_linux.next();
        for (name, frame) in &frames {
            let expected = match next {
                Some((kept, length)) if kept == *name => {
                    next = kept_by_linux.next();
                    length.parse().expect("a length")
                }
                _ => 0,
            };
            assert_eq!(kept(&program, frame), expected, "{expression}: {name}");
            checked += 1;
        }
        assert_eq!(next, None, "{expression}");
    }
    assert_eq!(checked, 22 * 11);
}

#[test]
fn random_programs_are_refused_or_keep_what_linux_keeps() {
    let text = include_str!("../fixtures/random.txt");
    let frames: Vec<_> = text
        .lines()
        .map_while(|line| line.strip_prefix("frame "))
        .map(bytes)
        .collect();
    let (mut refused, mut ran) = (0, 0);
    for line in text.lines().skip(frames.len()) {
        let (code, verdict): (Vec<_>, Vec<_>) = line.split(' ').partition(|word| word.len() == 16);
        let code: Vec<_> = code.into_iter().map(instruction).collect();
        match Program::check(&code) {
            Err(flaw) => {
                assert_eq!(verdict, ["refused"], "{flaw:?}: {line}");
                refused += 1;
            }
            Ok(program) => {
                let ours = frames.iter().map(|frame| kept(&program, frame).to_string());
                assert_eq!(ours.collect::<Vec<_>>(), verdict, "{line}");
                ran += 1;
            }
        }
    }
    assert!(refused >= 40 && ran >= 100, "{refused} refused, {ran} ran");
}
