//! A queue against an honest device.

use hal::{HasDeviceAddr, Span, sim::SimMemory};
use models::{Random, for_each_seed};
use virtq::sim::Device;
use virtq::{AddError, Config, Part, Queue, Token};

const SIZE: u16 = 8;

fn pair(event_index: bool) -> (Queue, Device, crate::SharedBuf) {
    let memory = SimMemory::new();
    let config = Config {
        size: SIZE,
        event_index,
        indirect_parts: 4,
    };
    let queue = Queue::new(&memory, config).unwrap();
    let device = Device::new(&memory, queue.addresses().unwrap(), SIZE);
    let data = crate::shared(&memory, 4096);
    (queue, device, data)
}

fn span(data: &crate::SharedBuf, at: usize, len: usize) -> Span {
    data.dev_addr(at, len).unwrap()
}

#[test]
fn a_chain_reaches_the_device_in_order_and_comes_back() {
    let (mut queue, mut device, data) = pair(true);
    let parts = [
        Part::Read(span(&data, 0, 10)),
        Part::Write(span(&data, 100, 20)),
        Part::Write(span(&data, 200, 30)),
    ];
    let token = queue.add(parts).unwrap();
    assert_eq!(device.fetch(), 0, "nothing shows before it is published");
    assert!(queue.publish(), "the device waits for index 0");
    assert_eq!(device.fetch(), 1);
    let chain = device.pending.pop_front().unwrap();
    assert_eq!(
        chain.parts.iter().map(|part| part.len).collect::<Vec<_>>(),
        [10, 20, 30]
    );
    assert_eq!(chain.writable(), 50);
    device.complete(u32::from(chain.head), 40);
    let used = queue.take().unwrap().unwrap();
    assert_eq!((used.token, used.written), (token, 40));
    assert_eq!(queue.take(), Ok(None));
    assert_eq!((queue.free(), queue.in_flight()), (SIZE, 0));
}

#[test]
fn an_indirect_chain_takes_one_descriptor() {
    let (mut queue, mut device, data) = pair(true);
    let part = Part::Read(span(&data, 0, 7));
    queue.add_indirect([part; 4]).unwrap();
    assert_eq!(queue.free(), SIZE - 1);
    assert_eq!(queue.add_indirect([part; 5]), Err(AddError::TooManyParts));
    assert_eq!(queue.add_indirect([]), Err(AddError::Empty));
    assert!(queue.publish());
    device.fetch();
    assert_eq!(device.pending[0].parts.len(), 4);
}

#[test]
fn a_framed_chain_has_its_tokens_ends_whatever_its_table_held_before() {
    let (mut queue, mut device, data) = pair(true);
    let ends = |token: Token| {
        let at = 64 * token.index();
        Some((
            Part::Read(span(&data, at, 16)),
            Part::Write(span(&data, at + 16, 1)),
        ))
    };
    queue.set_frames(ends).unwrap();
    let part = Part::Write(span(&data, 1024, 512));
    for round in 0..4 * usize::from(SIZE) {
        let next = queue.next_token().unwrap();
        let token = match round % 3 {
            0 => queue.add_indirect([Part::Read(span(&data, 0, 7)); 4]),
            _ => queue.add_framed(part),
        };
        assert_eq!(token, Ok(next));
        let _ = queue.publish();
        device.fetch();
        let chain = device.pending.pop_front().unwrap();
        if round % 3 != 0 {
            let (first, last) = ends(next).unwrap();
            let told: Vec<_> = [first, part, last]
                .map(|part| match part {
                    Part::Read(span) | Part::Write(span) => (span.addr().0, span.len()),
                })
                .into();
            let seen = chain.parts.iter().map(|part| (part.addr, part.len));
            assert_eq!(seen.collect::<Vec<_>>(), told);
            assert_eq!(chain.writable(), 513);
        }
        device.complete(u32::from(chain.head), 0);
        assert_eq!(queue.take().unwrap().map(|used| used.token), Some(next));
    }
}

#[test]
fn a_full_queue_has_no_next_token() {
    let (mut queue, _, data) = pair(true);
    let part = Part::Read(span(&data, 0, 1));
    for _ in 0..SIZE {
        queue.add_indirect([part]).unwrap();
    }
    assert_eq!(queue.next_token(), None);
    assert_eq!(queue.add_framed(part), Err(AddError::Full));
}

#[test]
fn a_full_queue_refuses_and_keeps_what_it_has() {
    let (mut queue, mut device, data) = pair(true);
    let part = Part::Read(span(&data, 0, 1));
    for _ in 0..SIZE - 1 {
        queue.add([part]).unwrap();
    }
    assert_eq!(queue.add([part; 2]), Err(AddError::Full));
    queue.add([part]).unwrap();
    assert_eq!(queue.add([part]), Err(AddError::Full));
    let _ = queue.publish();
    assert_eq!(device.fetch(), SIZE);
}

#[test]
fn one_doorbell_serves_a_batch_and_none_an_awake_device() {
    let (mut queue, mut device, data) = pair(true);
    let part = Part::Read(span(&data, 0, 1));
    queue.add([part]).unwrap();
    queue.add([part]).unwrap();
    assert!(queue.publish());
    assert!(!queue.publish(), "nothing new");
    queue.add([part]).unwrap();
    assert!(!queue.publish(), "the device has not asked again");
    device.fetch();
    device.want_doorbell_after(device.fetched());
    queue.add([part]).unwrap();
    assert!(queue.publish());
}

#[test]
fn without_event_indices_flags_silence_both_sides() {
    let (mut queue, device, data) = pair(false);
    let part = Part::Read(span(&data, 0, 1));
    queue.add([part]).unwrap();
    assert!(queue.publish());
    device.want_no_doorbells();
    queue.add([part]).unwrap();
    assert!(!queue.publish());
}

#[test]
fn arming_reports_completions_that_came_before() {
    let (mut queue, mut device, data) = pair(true);
    let part = Part::Write(span(&data, 0, 8));
    queue.add([part]).unwrap();
    queue.add([part]).unwrap();
    let _ = queue.publish();
    device.fetch();
    assert!(!device.complete(0, 8), "interrupts are off at first");
    assert!(queue.arm(), "one is waiting");
    queue.take().unwrap().unwrap();
    assert!(!queue.arm());
    assert!(device.complete(1, 8), "armed, so the device interrupts");
}

fn chain(random: &mut Random, data: &crate::SharedBuf) -> Vec<Part> {
    let count = 1 + random.below(4);
    let reads = random.below(count + 1);
    (0..count)
        .map(|index| {
            let at = span(
                data,
                random.below(4000) as usize,
                1 + random.below(90) as usize,
            );
            if index < reads {
                Part::Read(at)
            } else {
                Part::Write(at)
            }
        })
        .collect()
}

/// Random chains, completed in random order.
#[test]
fn no_descriptor_is_lost_and_no_token_confused_over_many_rounds() {
    for_each_seed(400, |_, mut random| {
        let random = &mut random;
        let (mut queue, mut device, data) = pair(random.below(2) == 0);
        let mut flying: Vec<Option<(Token, usize, u32)>> = vec![None; usize::from(SIZE)];
        for _ in 0..400 {
            let parts = chain(random, &data);
            let room = parts.iter().map(|part| match part {
                Part::Read(_) => 0,
                Part::Write(span) => span.len(),
            });
            let (count, room) = (parts.len(), room.sum());
            let added = match random.below(2) {
                0 => queue.add(parts),
                _ => queue.add_indirect(parts),
            };
            match added {
                Ok(token) => {
                    let slot = &mut flying[token.index()];
                    assert!(slot.replace((token, count, room)).is_none(), "token twice");
                }
                Err(error) => assert_eq!(error, AddError::Full),
            }
            let _ = queue.publish();
            device.fetch();
            for _ in 0..random.below(4).min(device.pending.len() as u64) {
                let at = random.below(device.pending.len());
                let done = device.pending.remove(at).unwrap();
                let (_, count, room) = flying[usize::from(done.head)].unwrap();
                assert_eq!((done.parts.len(), done.writable()), (count, room));
                device.complete(u32::from(done.head), room);
            }
            while let Some(used) = queue.take().unwrap() {
                let (token, _, room) = flying[used.token.index()].take().unwrap();
                assert_eq!((used.token, used.written), (token, room));
            }
        }
        assert_eq!(
            usize::from(queue.in_flight()),
            flying.iter().flatten().count()
        );
    });
}
