from sopool.experiments.reproduce.paper.figure2 import compare_examples


def test_what_the_paper_says_of_its_examples():
    verdicts = {(one.pool, one.example): one for one in compare_examples()}
    for one in verdicts.values():
        assert one.told_apart == (one.nearest > 1e-9)
        assert one.told_apart or one.farthest < 1e-9  # never now and then
        assert not (one.paper and one.told_apart)
    fail = {key for key, one in verdicts.items() if not one.told_apart}
    first_order = {(pool, example) for pool in ("mean", "max") for example in "ab"}
    assert fail == {("covpool", "a"), ("attnpool", "a"), ("attnpool", "b")} | first_order


def test_another_seed_draws_others_and_says_the_same():
    one = compare_examples(0)
    other = compare_examples(1)
    assert [verdict.told_apart for verdict in one] == [verdict.told_apart for verdict in other]
    assert one != other
    assert one == compare_examples(0)
