//! Which rings there may be.

use capture::{Geometry, Refusal, RingRequest, View};

use crate::world::request;

fn refusal(change: impl FnOnce(&mut RingRequest)) -> Option<Refusal> {
    let mut wanted = request(4);
    change(&mut wanted);
    Geometry::check(&wanted, View::Link, 16 << 20).err()
}

#[test]
fn blocks_are_whole_pages() {
    assert_eq!(refusal(|_| {}), None);
    for block_bytes in [0, 2048, 4097, u32::MAX] {
        let refused = Some(Refusal::BlockBytes(block_bytes));
        assert_eq!(refusal(|wanted| wanted.block_bytes = block_bytes), refused);
    }
    assert_eq!(
        refusal(|wanted| wanted.blocks = 0),
        Some(Refusal::BlockBytes(4096))
    );
}

#[test]
fn a_header_fits_behind_the_private_area() {
    let most = 4096 - 48 - 72;
    assert_eq!(refusal(|wanted| wanted.private_bytes = most), None);
    for private_bytes in [most + 1, u32::MAX] {
        let refused = Some(Refusal::PrivateBytes(private_bytes));
        assert_eq!(
            refusal(|wanted| wanted.private_bytes = private_bytes),
            refused
        );
    }
    let reserve = |wanted: &mut RingRequest| wanted.reserve_bytes = u32::MAX;
    assert_eq!(refusal(reserve), Some(Refusal::PrivateBytes(0)));
}

#[test]
fn slots_are_of_a_size_that_older_versions_could_use() {
    for frame_bytes in [0, 64, 72, 2056, 8192] {
        let refused = Some(Refusal::FrameBytes(frame_bytes));
        assert_eq!(refusal(|wanted| wanted.frame_bytes = frame_bytes), refused);
    }
    assert_eq!(
        refusal(|wanted| wanted.frames = 7),
        Some(Refusal::Frames { fit: 8 })
    );
}

#[test]
fn the_caller_says_how_large_a_ring_may_be() {
    let large = |wanted: &mut RingRequest| {
        wanted.blocks = 1 << 20;
        wanted.frames = 2 << 20;
    };
    assert_eq!(refusal(large), Some(Refusal::TooLarge { bytes: 1 << 32 }));
}
