use std::vec::Vec;

use crate::{Iova, Piece, pieces};

const LARGE: u64 = 2 << 20;

fn cut(start: u64, frames: &[u64]) -> Vec<Piece> {
    let iova = Iova::new(start, (frames.len() as u64) << 12).expect("pages");
    pieces(iova, frames.iter().copied()).collect()
}

fn piece(device: u64, physical: u64, bytes: u64) -> Piece {
    Piece {
        device,
        physical,
        bytes,
    }
}

#[test]
fn pages_that_follow_each_other_are_one_piece() {
    let frames = [0x5000, 0x6000, 0x9000, 0x8000, 0x9000];
    let wanted = [
        piece(0x1000, 0x5000, 0x2000),
        piece(0x3000, 0x9000, 0x1000),
        piece(0x4000, 0x8000, 0x2000),
    ];
    assert_eq!(cut(0x1000, &frames), wanted);
    assert_eq!(cut(0x1000, &[0x5000]), [piece(0x1000, 0x5000, 0x1000)]);
}

#[test]
fn no_piece_crosses_a_border_of_a_large_page() {
    let frames: Vec<u64> = (0..1025).map(|page| 0x4000_0000 + (page << 12)).collect();
    let wanted = [
        piece(LARGE - 0x1000, 0x4000_0000, 0x1000),
        piece(LARGE, 0x4000_1000, LARGE),
        piece(2 * LARGE, 0x4020_1000, LARGE),
    ];
    assert_eq!(cut(LARGE - 0x1000, &frames), wanted);
}

#[test]
fn frames_beyond_the_end_are_left_out() {
    let iova = Iova::new(0x1000, 0x1000).expect("a page");
    let all: Vec<Piece> = pieces(iova, [0x5000, 0x6000].into_iter()).collect();
    assert_eq!(all, [piece(0x1000, 0x5000, 0x1000)]);
}
