use super::*;
use alloc::vec::Vec;

fn caller(uid: u32) -> Caller<'static> {
    Caller {
        uid,
        gid: 100,
        is_in_group: &|group| group == 100,
        ignores_modes: false,
        is_administrator: uid == 0,
    }
}

fn request(key: i32) -> GetRequest {
    GetRequest {
        key,
        create: true,
        exclusive: false,
        mode: 0o640,
    }
}

#[test]
fn a_key_finds_the_object_it_was_made_with() {
    let mut registry = Registry::new(4);
    let first = registry.insert(request(7), &caller(1), 'a').unwrap();
    let second = registry.insert(request(0), &caller(1), 'b').unwrap();
    assert_ne!(first, second);
    assert_eq!(registry.find(request(7), &caller(1)), Ok(Some(first)));
    assert_eq!(registry.find(request(0), &caller(1)), Ok(None));
    let only = GetRequest {
        create: false,
        ..request(8)
    };
    assert_eq!(registry.find(only, &caller(1)), Err(Error::NotFound));
    let new = GetRequest {
        exclusive: true,
        ..request(7)
    };
    assert_eq!(registry.find(new, &caller(1)), Err(Error::Exists));
}

#[test]
fn modes_bind_users_groups_and_others() {
    let mut registry = Registry::new(4);
    let number = registry.insert(request(7), &caller(1), ()).unwrap();
    let owner = registry.get(number).unwrap().owner;
    assert!(owner.permits(&caller(1), 6));
    assert!(owner.permits(&caller(2), 4) && !owner.permits(&caller(2), 2));
    let other = Caller {
        is_in_group: &|_| false,
        ..caller(3)
    };
    assert!(!owner.permits(&other, 4));
    assert_eq!(registry.find(request(7), &other), Err(Error::Denied));
    assert!(owner.is_owned_by(&caller(0)) && !owner.is_owned_by(&caller(2)));
}

#[test]
fn a_number_that_was_removed_is_not_the_next_ones() {
    let mut registry = Registry::new(1);
    let old = registry.insert(request(7), &caller(1), ()).unwrap();
    assert_eq!(
        registry.insert(request(8), &caller(1), ()),
        Err(Error::Full)
    );
    registry.remove(old).unwrap();
    assert_eq!(registry.get(old).unwrap_err(), Error::NoSuchNumber);
    let new = registry.insert(request(7), &caller(1), ()).unwrap();
    assert_ne!(old, new);
    assert_eq!(registry.get(old).unwrap_err(), Error::Removed);
    assert_eq!(registry.len(), 1);
}

fn add(index: u16, change: i16) -> Operation {
    Operation {
        index,
        change,
        undo: false,
        no_wait: false,
    }
}

#[test]
fn operations_are_done_all_or_not_at_all() {
    let mut set = SemaphoreSet::new(2).unwrap();
    let mut undo = Undo::default();
    set.operate(&[add(0, 2)], &mut undo, 9).unwrap();
    let both = [add(0, -1), add(1, -1)];
    let blocked = Blocked::Wait {
        position: 1,
        for_zero: false,
    };
    assert_eq!(set.operate(&both, &mut undo, 9), Err(blocked));
    assert_eq!((set.value(0), set.value(1)), (Some(2), Some(0)));
    set.operate(&[add(1, 1)], &mut undo, 9).unwrap();
    set.operate(&both, &mut undo, 8).unwrap();
    assert_eq!((set.value(0), set.value(1)), (Some(1), Some(0)));
    assert_eq!(set.changer(1), Some(8));
}

#[test]
fn operations_see_what_those_before_did() {
    let mut set = SemaphoreSet::new(1).unwrap();
    let mut undo = Undo::default();
    let pass = [add(0, 0), add(0, 1)];
    set.operate(&pass, &mut undo, 1).unwrap();
    let blocked = Blocked::Wait {
        position: 0,
        for_zero: true,
    };
    assert_eq!(set.operate(&pass, &mut undo, 1), Err(blocked));
    set.operate(&[add(0, -1), add(0, 0)], &mut undo, 1).unwrap();
}

#[test]
fn values_stay_in_range() {
    let mut set = SemaphoreSet::new(1).unwrap();
    let mut undo = Undo::default();
    set.operate(&[add(0, 32_767)], &mut undo, 1).unwrap();
    assert_eq!(set.operate(&[add(0, 1)], &mut undo, 1), Err(Blocked::Range));
    assert!(!set.set(0, 32_768, 1) && set.set(0, 5, 1));
    let far = [add(3, 1)];
    assert_eq!(
        set.operate(&far, &mut undo, 1),
        Err(Blocked::NoSuchSemaphore)
    );
}

#[test]
fn an_end_takes_back_what_was_done() {
    let mut set = SemaphoreSet::new(1).unwrap();
    let mut undo = Undo::default();
    let with_undo = |change| Operation {
        undo: true,
        ..add(0, change)
    };
    set.operate(&[with_undo(3)], &mut undo, 1).unwrap();
    set.operate(&[with_undo(-1)], &mut undo, 1).unwrap();
    set.take_back(&undo, 1);
    assert_eq!(set.value(0), Some(0));
    let mut other = Undo::default();
    set.operate(&[with_undo(1), with_undo(-1)], &mut other, 1)
        .unwrap();
    assert!(other.is_empty());
}

#[test]
fn random_operations_keep_the_sum_that_an_oracle_keeps() {
    for seed in 1..=500_u64 {
        let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mut next = |limit: u64| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state % limit
        };
        let mut set = SemaphoreSet::new(3).unwrap();
        let mut undo = Undo::default();
        let mut values = [0_i32; 3];
        let mut undone = [0_i32; 3];
        for _ in 0..60 {
            let operations: Vec<Operation> = (0..=next(3))
                .map(|_| Operation {
                    index: next(3) as u16,
                    change: next(9) as i16 - 4,
                    undo: next(2) == 0,
                    no_wait: false,
                })
                .collect();
            let mut after = values;
            let mut undone_after = undone;
            let is_possible = operations.iter().all(|operation| {
                let index = usize::from(operation.index);
                let change = i32::from(operation.change);
                let passes = match change {
                    0 => after[index] == 0,
                    _ => after[index] + change >= 0,
                };
                after[index] += change;
                undone_after[index] -= if operation.undo { change } else { 0 };
                passes
            });
            let done = set.operate(&operations, &mut undo, 1).is_ok();
            assert_eq!(done, is_possible, "replay with SEED={seed}");
            if done {
                (values, undone) = (after, undone_after);
            }
            for (index, value) in values.iter().enumerate() {
                assert_eq!(set.value(index), Some(*value as u16), "SEED={seed}");
            }
        }
        set.take_back(&undo, 1);
        for index in 0..3 {
            let expected = (values[index] + undone[index]).max(0) as u16;
            assert_eq!(set.value(index), Some(expected), "SEED={seed}");
        }
    }
}

fn message(kind: i64, bytes: &[u8]) -> Message {
    Message {
        kind,
        bytes: bytes.to_vec(),
    }
}

#[test]
fn messages_are_picked_by_type() {
    let mut queue = Queue::new(100);
    for (kind, bytes) in [(5, b"a"), (3, b"b"), (5, b"c"), (1, b"d")] {
        queue.put(message(kind, bytes)).unwrap();
    }
    let mut take = |pick| queue.take(pick, 9, false).map(|it| it.bytes[0]);
    assert_eq!(take(Pick::CopyOf(2)), Ok(b'c'));
    assert_eq!(take(Pick::OfKind(5)), Ok(b'a'));
    assert_eq!(take(Pick::LowestUpTo(4)), Ok(b'd'));
    assert_eq!(take(Pick::NotOfKind(3)), Ok(b'c'));
    assert_eq!(take(Pick::OfKind(5)), Err(QueueError::WouldBlock));
    assert_eq!(take(Pick::First), Ok(b'b'));
    assert_eq!(queue.bytes(), 0);
}

#[test]
fn a_queue_is_bounded_in_bytes_and_in_messages() {
    let mut queue = Queue::new(4);
    queue.put(message(1, b"abc")).unwrap();
    let back = queue.put(message(1, b"de")).unwrap_err();
    assert_eq!(back.bytes, b"de");
    for _ in 0..3 {
        queue.put(message(1, b"")).unwrap();
    }
    assert!(queue.put(message(1, b"")).is_err());
    assert_eq!(queue.take(Pick::First, 2, false), Err(QueueError::TooLarge));
    assert_eq!(queue.take(Pick::First, 2, true).unwrap().bytes, b"ab");
}
