use crate::{Bar, Config, Write};

const ID: u32 = 0x10ca_8086;

fn config() -> Config {
    let small = Bar {
        bytes: 0x4000,
        kind: 0,
    };
    let wide = Bar {
        bytes: 0x2_0000_0000,
        kind: 0b1100,
    };
    let bars = [Some(small), None, Some(wide), None, None, Some(small)];
    Config::new(ID, bars, Some((0x54, 0x60)))
}

#[test]
fn a_program_finds_the_sizes_of_base_addresses_and_moves_none() {
    let mut config = config();
    for offset in (0x10..0x28).step_by(4) {
        config.write(offset, u32::MAX, u32::MAX);
    }
    let words = [0x10, 0x14, 0x18, 0x1c, 0x20, 0x24].map(|at| config.read(at, 0x1234_5678));
    assert_eq!(words, [0xffff_c000, 0, 0xc, 0xffff_fffe, 0, 0xffff_c000]);
    assert_eq!(config.write(0x10, 0xfe00_0000, u32::MAX), Write::Kept);
    assert_eq!(config.read(0x10, 0), 0xfe00_0000);
    assert_eq!(config.write(0x14, 0xfe00_0000, u32::MAX), Write::Dropped);
    assert_eq!(
        config.command(),
        1 << 10 | 0b10,
        "and the device hears nothing"
    );
}

#[test]
fn only_two_bits_of_the_command_reach_the_device() {
    let mut config = config();
    assert_eq!(config.write(4, 0xffff_ffff, 0xffff_ffff), Write::Command);
    assert_eq!(config.command(), 1 << 10 | 0b110);
    assert!(config.answers());
    assert_eq!(config.read(4, 0x0010_ffff), 0x0010_0406);
    // The upper byte alone.
    assert_eq!(config.write(4, 0, 0xff00), Write::Command);
    assert_eq!(config.command(), 1 << 10 | 0b110);
    assert_eq!(config.write(4, 0b100, 0xff), Write::Command);
    assert_eq!(config.command(), 1 << 10 | 0b100);
    assert_eq!(
        config.write(4, 0, 0xffff_0000),
        Write::Dropped,
        "the status"
    );
}

#[test]
fn what_the_kernel_told_a_device_is_not_shown_and_not_changed() {
    let mut config = config();
    assert_eq!(config.read(0, 0xffff_ffff), ID);
    assert_eq!(config.read(0x50, 0x0081_0005), 0x0081_0005);
    for offset in [0x54, 0x58, 0x5c] {
        assert_eq!(config.read(offset, 0xfee0_0000), 0);
        assert_eq!(config.write(offset, 0xfee0_0000, u32::MAX), Write::Dropped);
    }
    assert_eq!(config.read(0x60, 7), 7);
    for offset in (0x40..0x100).step_by(4) {
        assert_eq!(config.write(offset, u32::MAX, u32::MAX), Write::Dropped);
    }
    assert_eq!(config.read(0x3c, 0x0102_010b), 0x0102_0000, "no line");
    assert_eq!(config.write(0x3c, 0x0505, 0xffff), Write::Kept);
    assert_eq!(config.read(0x3c, 0x0102_010b), 0x0102_0005);
    assert_eq!(config.read(0x30, 0xfff0_0001), 0, "no ROM");
}

#[test]
fn a_revoked_function_neither_answers_nor_reaches_out_whatever_its_program_writes() {
    let mut config = config();
    config.write(4, 0b110, 0xffff);
    config.revoke();
    assert!(config.is_revoked() && !config.answers());
    assert_eq!(config.command(), 1 << 10);
    for offset in (0..0x100).step_by(4) {
        assert_eq!(config.write(offset, u32::MAX, u32::MAX), Write::Dropped);
    }
    assert_eq!(config.command(), 1 << 10);
}
