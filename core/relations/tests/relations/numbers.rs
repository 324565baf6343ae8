//! Which numbers are given.

use std::array::from_fn;
use std::collections::BTreeSet;

use models::{Plain, Random, Watched, explore, for_each_seed};
use relations::Numbers;

const WORDS: usize = 3;
const END: u32 = 192;

type Few = Numbers<Plain, WORDS>;

fn few() -> Few {
    Few::new(
        from_fn(|_| Default::default()),
        Default::default(),
        Default::default(),
    )
}

#[test]
fn numbers_are_given_in_turn_and_not_reused_soon() {
    let numbers = few();
    assert_eq!(
        [1, 2, 3].map(|_| numbers.allocate()),
        [Some(1), Some(2), Some(3)]
    );
    numbers.release(2);
    assert_eq!(numbers.allocate(), Some(4), "2 was given a moment ago");
    assert_eq!(numbers.given(), 4);
}

#[test]
fn after_the_last_number_the_first_free_one_follows() {
    let numbers = few();
    let all: Vec<_> = (1..END).map(|_| numbers.allocate()).collect();
    assert_eq!(all, (1..END).map(Some).collect::<Vec<_>>());
    assert_eq!(numbers.allocate(), None, "all are taken");
    [70, 9].iter().for_each(|number| numbers.release(*number));
    assert_eq!(
        [(); 3].map(|()| numbers.allocate()),
        [Some(9), Some(70), None]
    );
}

#[test]
fn behind_the_end_numbers_are_given_in_turn_again() {
    let numbers = few();
    (1..END).for_each(|_| assert!(numbers.allocate().is_some()));
    [70, 9].iter().for_each(|number| numbers.release(*number));
    assert_eq!(numbers.allocate(), Some(9));
    numbers.release(9);
    assert_eq!(numbers.allocate(), Some(70), "9 was given a moment ago");
    numbers.release(70);
    assert_eq!(numbers.allocate(), Some(9));
    numbers.release(9);
    assert_eq!([(); 2].map(|()| numbers.allocate()), [Some(70), Some(9)]);
    numbers.release(9);
    assert_eq!(numbers.allocate(), Some(9), "no other one is free");
}

#[test]
fn a_number_beyond_the_end_and_0_are_never_given_nor_released() {
    let numbers = few();
    [0, END, u32::MAX]
        .iter()
        .for_each(|number| numbers.release(*number));
    assert_eq!((numbers.next_taken(0), numbers.last_taken()), (None, 0));
}

#[test]
fn what_is_taken_is_what_was_given_and_not_released() {
    for_each_seed(20, |seed, mut random| {
        let (numbers, mut taken) = (few(), BTreeSet::new());
        for step in 0..500 {
            change(&numbers, &mut taken, &mut random);
            let mut known = Vec::new();
            while let Some(next) = numbers.next_taken(known.last().map_or(0, |last| last + 1)) {
                known.push(next);
            }
            assert_eq!(
                known,
                Vec::from_iter(taken.clone()),
                "seed {seed}, step {step}"
            );
            assert_eq!(
                numbers.last_taken(),
                taken.last().copied().unwrap_or(0),
                "seed {seed}"
            );
        }
    });
}

fn change(numbers: &Few, taken: &mut BTreeSet<u32>, random: &mut Random) {
    let fullness = taken.len() * 4 / END as usize;
    if !taken.is_empty() && random.below(5) < fullness.max(1) {
        let index = random.below(taken.len());
        let number = *taken.iter().nth(index).unwrap();
        taken.remove(&number);
        return numbers.release(number);
    }
    match numbers.allocate() {
        Some(number) => assert!(taken.insert(number), "{number} was taken"),
        None => assert_eq!(taken.len() as u32, END - 1),
    }
}

#[test]
fn two_that_ask_at_the_same_time_get_two_numbers() {
    explore(|| {
        let numbers = loom::sync::Arc::new(Numbers::<Watched, 1>::new(
            from_fn(|_| Default::default()),
            Default::default(),
            Default::default(),
        ));
        let other = numbers.clone();
        let other = loom::thread::spawn(move || {
            let number = other.allocate().unwrap();
            other.release(number);
            (number, other.allocate().unwrap())
        });
        let own = numbers.allocate().unwrap();
        let (_, kept) = other.join().unwrap();
        assert_ne!(own, kept);
        assert_eq!(numbers.given(), 3);
        let taken: Vec<_> = (0..64)
            .filter(|number| numbers.next_taken(*number) == Some(*number))
            .collect();
        assert_eq!(taken, Vec::from_iter(BTreeSet::from([own, kept])));
    });
}

#[test]
fn a_number_is_not_reused_at_once_whoever_of_two_gave_the_last_one() {
    explore(|| {
        let numbers = loom::sync::Arc::new(Numbers::<Watched, 1>::new(
            from_fn(|_| Default::default()),
            Default::default(),
            Default::default(),
        ));
        let other = numbers.clone();
        let other = loom::thread::spawn(move || other.allocate().unwrap());
        let given = [numbers.allocate().unwrap(), other.join().unwrap()];
        for number in given {
            numbers.release(number);
        }
        assert_eq!(numbers.allocate(), Some(3));
    });
}
