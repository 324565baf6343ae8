//! A queue keeps its order, and gives nothing twice that was gone for good.

use std::collections::VecDeque;
use std::vec::Vec;

use models::for_each_seed;

use super::shell::Driver;
use crate::{HEADER_BYTES, Queue, open};

#[test]
fn items_come_out_in_order_and_survive_losses_of_power() {
    for_each_seed(200, |_, mut random| {
        let mut driver = Driver::new(512, 20);
        let mut queue = Queue::new(crate::format(&mut driver.disk, 1).unwrap());
        // All items ever pushed that may still be there, with their numbers.
        let mut items: VecDeque<(u64, [u8; 8])> = VecDeque::new();
        let mut bytes = Vec::new();
        for step in 0..300_u64 {
            match random.below(8) {
                0..=2 => {
                    let mut header = [0; HEADER_BYTES];
                    let item = step.to_le_bytes();
                    if let Ok(ticket) = queue.push(&mut header, &[&item]) {
                        driver.keep(ticket, &[&header, &item]);
                        items.push_back((ticket.place.sequence(), item));
                    }
                }
                3..=4 => {
                    let front = queue.front(&mut driver.disk, &mut bytes).unwrap();
                    if let Some(item) = front {
                        let number = item.place.sequence();
                        let expected = items.iter().find(|(known, _)| *known == number);
                        assert_eq!(expected.map(|(_, bytes)| &bytes[..]), Some(&bytes[..]));
                        assert!(queue.pop(&item) && !queue.pop(&item));
                    }
                }
                5 if random.once_in(12) => {
                    let (durable, popped) = (queue.log().durable(), queue.popped());
                    driver.lose_power(&mut random);
                    queue = Queue::new(open(&mut driver.disk).unwrap());
                    let (head, end) = (queue.log().head(), queue.log().end());
                    assert!(head.sequence() >= popped.sequence());
                    assert!(end.sequence() >= durable.sequence());
                    items.retain(|(number, _)| *number < end.sequence());
                    assert_eq!(queue.len(), end.sequence() - head.sequence());
                }
                _ => driver.run(queue.log(), random.below(6), &mut random),
            }
        }
        driver.run(queue.log(), 1000, &mut random);
        while let Some(item) = queue.front(&mut driver.disk, &mut bytes).unwrap() {
            assert!(queue.pop(&item));
            driver.run(queue.log(), 100, &mut random);
        }
        // All of its room is there again.
        assert_eq!(queue.log().free_blocks(), 18);
    });
}
