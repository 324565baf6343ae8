//! What a card counts, in registers that lie where they always did (13.7 of the 8254x's
//! manual, 8.18 of the 82576's datasheet). Reading a counter clears it, so they are summed up here.

use hal::{CardCounters, Registers};

const FCS_ERRORS: usize = 0x4000;
const RX_ERRORS: usize = 0x400c;
const MISSED: usize = 0x4010;
const EXCESSIVE_COLLISIONS: usize = 0x4018;
const LATE_COLLISIONS: usize = 0x4020;
const GOOD_RX: usize = 0x4074;
const GOOD_RX_BROADCAST: usize = 0x4078;
const GOOD_RX_MULTICAST: usize = 0x407c;
const GOOD_TX: usize = 0x4080;
const GOOD_RX_BYTES: usize = 0x4088;
const GOOD_TX_BYTES: usize = 0x4090;
const UNDERSIZE: usize = 0x40a4;
const FRAGMENTS: usize = 0x40a8;
const OVERSIZE: usize = 0x40ac;
const JABBER: usize = 0x40b0;

/// Adds what was counted since the last time.
pub fn collect(registers: &impl Registers, sum: &mut CardCounters) {
    let count = |offset: usize| u64::from(registers.read32(offset));
    let all = |offsets: &[usize]| offsets.iter().map(|offset| count(*offset)).sum::<u64>();
    // The high half, read last, clears both.
    let wide = |low: usize| count(low) | count(low + 4) << 32;
    sum.rx_frames += count(GOOD_RX);
    sum.rx_bytes += wide(GOOD_RX_BYTES);
    sum.rx_multicast += count(GOOD_RX_MULTICAST);
    sum.rx_broadcast += count(GOOD_RX_BROADCAST);
    sum.tx_frames += count(GOOD_TX);
    sum.tx_bytes += wide(GOOD_TX_BYTES);
    sum.rx_missed += count(MISSED);
    sum.rx_damaged += all(&[FCS_ERRORS, RX_ERRORS]);
    sum.rx_bad_length += all(&[UNDERSIZE, FRAGMENTS, OVERSIZE, JABBER]);
    sum.tx_collided += all(&[EXCESSIVE_COLLISIONS, LATE_COLLISIONS]);
}
