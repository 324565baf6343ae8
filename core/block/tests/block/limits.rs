//! Commands keep to what the device says, and what it says is checked.

use block::split::{self, Cursor};
use block::{Bulk, Durability, Failure, Limits, Operation};
use hal::sim::SimMemory;
use hal::{DmaBuf, DmaRequest, DmaSource, HasDeviceAddr};
use models::for_each_seed;

use crate::rig::{Rig, limits, range};

#[test]
fn a_device_with_impossible_blocks_is_refused_and_other_nonsense_is_not_believed() {
    for block_bytes in [0, 1, 513, 8192, u32::MAX] {
        let odd = Limits {
            block_bytes,
            ..Limits::plain(8)
        };
        assert_eq!(odd.checked(), None);
    }
    let nonsense = Limits {
        sectors: 1023,
        block_bytes: 4096,
        physical_bytes: 77,
        segments_max: 0,
        segment_bytes_max: 1,
        segment_boundary: Some(3),
        segment_align: 0,
        command_bytes_max: 0,
        chunk_sectors: Some(7),
        discard: Some(Bulk {
            sectors_max: 7,
            granularity: 0,
        }),
        ..Limits::plain(0)
    };
    let sane = nonsense.checked().unwrap();
    assert_eq!((sane.sectors, sane.physical_bytes), (1016, 4096));
    assert_eq!((sane.segments_max, sane.segment_bytes_max), (1, 4096));
    assert_eq!((sane.command_bytes_max, sane.segment_align), (4096, 4096));
    assert_eq!((sane.segment_boundary, sane.chunk_sectors), (None, None));
    assert_eq!(sane.discard, None, "less than a block");
}

#[test]
fn what_cannot_be_is_refused_before_the_device_hears_of_it() {
    let mut rig = Rig::new(
        Limits {
            block_bytes: 4096,
            ..limits()
        },
        4,
    );
    let write = Operation::Write(Durability::Volatile);
    let cases = [
        (Operation::Read, range(1020, 8), 4096, Failure::OutOfRange),
        (
            Operation::Read,
            range(u64::MAX, 8),
            4096,
            Failure::OutOfRange,
        ),
        (Operation::Read, range(1, 8), 4096, Failure::Misaligned),
        (Operation::Read, range(0, 1), 512, Failure::Misaligned),
        (write, range(0, 16), 4096, Failure::Misaligned),
        (Operation::Discard, range(0, 8), 0, Failure::Unsupported),
    ];
    for (number, (operation, sectors, len, failure)) in cases.into_iter().enumerate() {
        let lens = if len == 0 { vec![] } else { vec![len] };
        let request = rig.request(number as u32, operation, sectors, &lens, 0);
        assert!(rig.submit(request));
        assert_eq!(rig.outcome(number as u32), Err(failure));
    }
    let read_only = Limits {
        is_read_only: true,
        ..limits()
    };
    let mut rig = Rig::new(read_only, 4);
    rig.write(1, 0, 1, Durability::Volatile);
    assert_eq!(rig.outcome(1), Err(Failure::ReadOnly));
    assert_eq!(rig.disk.commands(), 0);
}

#[test]
fn memory_that_lies_together_is_one_piece() {
    let rig = Rig::new(limits(), 4);
    let request = rig.request(0, Operation::Read, range(0, 16), &[8192], 0);
    let whole = request.keep.spans[0];
    let spans = [
        whole.part(0, 512).unwrap(),
        whole.part(512, 3584).unwrap(),
        whole.part(4096, 4096).unwrap(),
    ];
    let (mut cursor, mut pieces) = (Cursor::default(), Vec::new());
    let limits = limits().checked().unwrap();
    let mut next = || {
        let sectors = split::next(
            &limits,
            Operation::Read,
            range(8, 16),
            &spans,
            &mut cursor,
            &mut pieces,
        );
        (sectors, pieces.clone())
    };
    assert_eq!(next(), (Ok(Some(range(8, 16))), vec![whole]));
    assert_eq!(next(), (Ok(None), vec![]));
    crate::rig::bytes_of(request.keep.memory);
}

#[test]
fn discards_and_zeroes_are_cut_to_what_one_command_takes() {
    let bulk = Some(Bulk {
        sectors_max: 100,
        granularity: 8,
    });
    let limits = Limits {
        discard: bulk,
        zeroes: bulk,
        ..limits()
    };
    let mut rig = Rig::new(limits, 8);
    let zeroes = Operation::WriteZeroes { may_unmap: false };
    for (number, operation) in [(0, Operation::Discard), (1, zeroes)] {
        let request = rig.request(number, operation, range(0, 250), &[], 0);
        assert!(rig.submit(request));
        assert_eq!(rig.disk.pending(), 3);
        rig.run(&mut |_| 0);
        assert!(rig.outcome(number).is_ok());
    }
}

#[test]
fn any_memory_on_any_device_keeps_to_its_limits_and_arrives() {
    for_each_seed(300, |_, mut random| {
        let block_bytes = [512, 1024, 4096][random.below(3usize)];
        let limits = Limits {
            block_bytes,
            segments_max: 1 + random.below(6u16),
            segment_bytes_max: 512 << random.below(6u32),
            command_bytes_max: 512 << random.below(7u32),
            segment_boundary: [None, Some(4096), Some(8192)][random.below(3usize)],
            chunk_sectors: [None, Some(8), Some(24)][random.below(3usize)],
            ..limits()
        };
        let mut rig = Rig::new(limits, 1 + random.below(4u16));
        let mut lens = Vec::new();
        for _ in 0..1 + random.below(5usize) {
            lens.push(512 * (1 + random.below(20usize)));
        }
        let total: usize = lens.iter().sum();
        let missing = total.next_multiple_of(4096) - total;
        lens.extend((missing != 0).then_some(missing));
        let sectors = range(8 * random.below(64u64), (total + missing) as u64 / 512);
        let write = Operation::Write(Durability::Volatile);
        let request = rig.request(0, write, sectors, &lens, 0xa5);
        assert!(rig.submit(request));
        rig.run(&mut |count| random.below(count));
        match rig.outcome(0) {
            Ok(_) => {}
            // Pieces so small that no block fits into as many as the device takes.
            Err(Failure::Misaligned) => return,
            Err(failure) => panic!("{failure:?}"),
        }
        let written = rig.disk.bytes(sectors);
        assert!(written.iter().all(|byte| *byte == 0xa5));
        let request = rig.request(1, Operation::Read, sectors, &lens, 0);
        assert!(rig.submit(request));
        rig.run(&mut |count| random.below(count));
        let (_, result, bytes) = rig.ended.pop().unwrap();
        assert!(result.is_ok());
        assert_eq!(bytes, written);
        assert_eq!(rig.memory.buffers(), 0, "all memory was handed back");
    });
}

#[test]
fn a_device_that_is_told_pages_gets_a_command_for_each_gap() {
    let memory = SimMemory::new();
    let buffer: DmaBuf = memory.dma_alloc(&DmaRequest::new(5 * 4096, 4096)).unwrap();
    let buffer = buffer.give();
    let limits = Limits {
        page_bytes: Some(4096),
        segments_max: 8,
        ..limits()
    };
    // Page, where in it, how much: none touches the next.
    let parts = [
        (3, 512, 3584),
        (1, 0, 4096),
        (0, 0, 512),
        (2, 512, 512),
        (4, 0, 4096),
    ];
    let spans = parts.map(|(page, at, len)| buffer.dev_addr(page * 4096 + at, len).unwrap());
    let (mut cursor, mut pieces) = (Cursor::default(), Vec::new());
    let mut commands = Vec::new();
    while let Some(sectors) = split::next(
        &limits,
        Operation::Read,
        range(0, 25),
        &spans,
        &mut cursor,
        &mut pieces,
    )
    .unwrap()
    {
        commands.push((sectors.first, sectors.count, pieces.len()));
    }
    assert_eq!(commands, [(0, 16, 3), (16, 1, 1), (17, 8, 1)]);
    buffer.take_back();
}
