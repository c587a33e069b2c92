//! Each condition by itself.

use observe::pfc::Direction;
use observe::pfc::qualify::{Condition, Ground, Qualification};

fn all_but(direction: Direction, missing: Option<Condition>) -> Qualification {
    let said = Condition::ALL.into_iter().filter(|condition| Some(*condition) != missing);
    said.fold(Qualification::new(direction), Qualification::attested)
}

// PFC-id.2, PFC-id.3, PFC-count.1, PFC-count.2, PFC-count.3, PFC-count.4, PFC-rec.2, PFC-sem.1,
// PFC-exp.3
#[test]
fn a_source_is_refused_for_each_condition_of_its_direction_and_it_is_named() {
    for direction in Direction::ALL {
        assert!(all_but(direction, None).check().is_ok());
        for condition in Condition::ALL {
            let checked = all_but(direction, Some(condition)).check();
            if condition.is_for(direction) {
                let refused = checked.unwrap_err();
                assert_eq!(refused.missing().collect::<Vec<_>>(), [condition]);
                let words = format!(
                    "a source of {} frames that neither states nor is attested {}",
                    direction.word(),
                    condition.name()
                );
                assert_eq!(refused.to_string(), words);
            } else {
                assert_eq!(checked.map(|q| q.direction()), Ok(direction));
            }
        }
    }
}

// PFC-count.1: an intention is no emission, and what a policy left over is not what came.
#[test]
fn one_condition_is_for_each_direction_alone() {
    for (condition, only) in [
        (Condition::BeforeProcessing, Direction::Received),
        (Condition::ConfirmedEmission, Direction::Transmitted),
    ] {
        for direction in Direction::ALL {
            assert_eq!(condition.is_for(direction), direction == only);
        }
    }
}

#[test]
fn a_source_of_which_nothing_is_said_lacks_everything() {
    let refused = Qualification::new(Direction::Received).check().unwrap_err();
    assert_eq!(refused.missing().count(), Condition::ALL.len() - 1);
    assert!(refused.to_string().contains(" physical-interface, vector-index, "), "{refused}");
}

#[test]
fn who_says_it_is_kept_and_the_source_comes_first() {
    let qualified = all_but(Direction::Received, Some(Condition::EveryFrame))
        .stated(Condition::EveryFrame)
        .attested(Condition::EveryFrame)
        .check()
        .unwrap();
    assert_eq!(qualified.ground(Condition::EveryFrame), Some(Ground::Stated));
    assert_eq!(qualified.ground(Condition::OnlyValid), Some(Ground::Attested));
}

#[test]
fn every_condition_is_found_by_its_name() {
    for condition in Condition::ALL {
        assert_eq!(Condition::named(condition.name()), Some(condition));
    }
    assert_eq!(Condition::named("every frame"), None);
}
