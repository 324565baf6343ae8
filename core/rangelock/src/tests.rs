use super::*;

fn ranges(locks: &RangeLocks<u32>, owner: u32) -> Vec<(Range<u64>, Mode)> {
    let own = locks.iter().filter(|held| held.owner == owner);
    own.map(|held| (held.range.clone(), held.mode)).collect()
}

#[test]
fn a_hole_in_a_lock_leaves_its_two_ends() {
    let mut locks = RangeLocks::default();
    locks.insert(1, 0..100, Mode::Exclusive).unwrap();
    assert!(locks.remove(1, &(40..60)));
    assert_eq!(
        ranges(&locks, 1),
        [(0..40, Mode::Exclusive), (60..100, Mode::Exclusive)]
    );
    assert!(locks.conflict(2, &(40..60), Mode::Exclusive).is_none());
    assert!(locks.conflict(2, &(0..u64::MAX), Mode::Shared).is_some());
}

#[test]
fn touching_locks_of_one_owner_become_one() {
    let mut locks = RangeLocks::default();
    locks.insert(1, 0..10, Mode::Shared).unwrap();
    locks.insert(1, 20..30, Mode::Shared).unwrap();
    locks.insert(1, 10..20, Mode::Shared).unwrap();
    assert_eq!(ranges(&locks, 1), [(0..30, Mode::Shared)]);
}

#[test]
fn an_upgrade_of_the_middle_splits_the_lock() {
    let mut locks = RangeLocks::default();
    locks.insert(1, 0..30, Mode::Shared).unwrap();
    locks.insert(1, 10..20, Mode::Exclusive).unwrap();
    let want = [
        (0..10, Mode::Shared),
        (10..20, Mode::Exclusive),
        (20..30, Mode::Shared),
    ];
    assert_eq!(ranges(&locks, 1), want);
}

#[test]
fn readers_share_and_writers_do_not() {
    let mut locks = RangeLocks::default();
    locks.insert(1, 0..10, Mode::Shared).unwrap();
    assert!(locks.conflict(2, &(0..10), Mode::Shared).is_none());
    assert_eq!(
        locks
            .conflict(2, &(9..10), Mode::Exclusive)
            .map(|held| held.owner),
        Some(1)
    );
    assert!(locks.conflict(1, &(0..10), Mode::Exclusive).is_none());
    assert!(locks.remove_owners(|owner| owner == 1));
    assert!(locks.is_empty());
}

#[test]
fn a_program_cannot_fill_memory_with_locks() {
    let mut locks = RangeLocks::default();
    let taken = (0..).map(|n| locks.insert(1u32, n * 2..n * 2 + 1, Mode::Shared));
    assert!(
        taken
            .take(LOCKS_MAX + 1)
            .any(|outcome| outcome == Err(Full))
    );
}

#[test]
fn a_circle_of_three_waiters_is_found() {
    let mut graph = WaitGraph::default();
    graph.add(1, 2);
    graph.add(2, 3);
    assert!(graph.would_deadlock(3, 1));
    assert!(!graph.would_deadlock(4, 1));
    graph.remove(2, 3);
    assert!(!graph.would_deadlock(3, 1));
}

/// A model of 64 bytes: each byte knows who holds it how.
#[test]
fn random_locks_agree_with_a_byte_by_byte_model() {
    let seed = 0x9e37_79b9_7f4a_7c15_u64;
    let mut state = seed;
    let mut random = |bound: u64| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state % bound
    };
    let mut locks = RangeLocks::default();
    let mut model = [[None; 64]; 3];
    for round in 0..5_000 {
        let owner = random(3) as usize;
        let start = random(63);
        let range = start..start + 1 + random(64 - start);
        let mode = if random(2) == 0 {
            Mode::Shared
        } else {
            Mode::Exclusive
        };
        let bytes = range.start as usize..range.end as usize;
        let blocked = (0..3).filter(|other| *other != owner).any(|other| {
            model[other][bytes.clone()]
                .iter()
                .flatten()
                .any(|held| *held == Mode::Exclusive || mode == Mode::Exclusive)
        });
        let conflict = locks.conflict(owner, &range, mode).is_some();
        assert_eq!(conflict, blocked, "SEED={seed:#x} round {round}");
        if random(3) == 0 {
            locks.remove(owner, &range);
            model[owner][bytes].fill(None);
        } else if !blocked {
            locks.insert(owner, range, mode).unwrap();
            model[owner][bytes].fill(Some(mode));
        }
    }
}
