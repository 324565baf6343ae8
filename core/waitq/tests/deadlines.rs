//! Deadlines of one CPU beside a plain list.

#![forbid(unsafe_code)]

use base::Instant;
use models::for_each_seed;
use waitq::Deadlines;

fn at(millis: u64) -> Instant {
    Instant::from_millis(millis)
}

#[test]
fn the_earliest_comes_first_and_equals_in_the_order_in_which_they_came() {
    let mut deadlines = Deadlines::new();
    assert_eq!(deadlines.first(), Instant::NEVER);
    for (millis, name) in [(20, 1), (10, 2), (20, 3), (10, 4)] {
        deadlines.add(at(millis), name);
    }
    assert_eq!(deadlines.first(), at(10));
    let mut due = || deadlines.pop_due(at(20));
    let order: [_; 5] = std::array::from_fn(|_| due());
    assert_eq!(order, [Some(2), Some(4), Some(1), Some(3), None]);
}

#[test]
fn nothing_comes_before_its_time() {
    let mut deadlines = Deadlines::new();
    deadlines.add(at(10), 1);
    assert_eq!(deadlines.pop_due(at(9)), None);
    assert_eq!(deadlines.pop_due(at(10)), Some(1));
    assert_eq!(deadlines.first(), Instant::NEVER);
}

#[test]
fn one_that_was_called_can_not_be_cancelled() {
    let mut deadlines = Deadlines::new();
    let (first, second) = (deadlines.add(at(10), 1), deadlines.add(at(10), 2));
    assert_eq!(deadlines.pop_due(at(10)), Some(1));
    assert_eq!(deadlines.cancel(first), None);
    assert_eq!(deadlines.cancel(second), Some(2));
    assert_eq!(deadlines.cancel(second), None, "once");
    assert_eq!(deadlines.pop_due(at(10)), None);
}

#[test]
fn long_histories_are_those_of_a_plain_list() {
    for_each_seed(200, |seed, mut random| {
        let (mut deadlines, mut list) = (Deadlines::new(), Vec::new());
        let mut now = 0;
        for name in 0..300 {
            match random.below(4) {
                0 | 1 => {
                    let due = now + random.below(20) as u64;
                    list.push((due, name, deadlines.add(at(due), name)));
                }
                2 if !list.is_empty() => {
                    let (_, name, id) = list.remove(random.below(list.len()));
                    assert_eq!(deadlines.cancel(id), Some(name), "seed {seed}");
                }
                _ => {
                    now += random.below(5) as u64;
                    list.sort_by_key(|(due, name, _)| (*due, *name));
                    let is_due = list.first().is_some_and(|(due, ..)| *due <= now);
                    let expected = is_due.then(|| list.remove(0).1);
                    assert_eq!(deadlines.pop_due(at(now)), expected, "seed {seed}");
                }
            }
            let first = list.iter().map(|(due, ..)| *due).min();
            let first = first.map_or(Instant::NEVER, at);
            assert_eq!(deadlines.first(), first, "seed {seed}");
        }
    });
}
