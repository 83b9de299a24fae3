"""Values that the ports take and give: what they say when nothing is said."""

from interlock.core.ports import ApprovalPage, ApprovalQuery
from interlock.core.search import SearchTerms, exact_term, make_search_terms, matches_query, needs_text_search
from tests.unit.builders import pending_with_payload


def test_a_query_without_filters_meets_everything_in_order() -> None:  # R8
    assert not needs_text_search(ApprovalQuery())
    assert matches_query(pending_with_payload(), ApprovalQuery())
    assert make_search_terms("default", ApprovalQuery()) == SearchTerms((exact_term("default", "workspace", ""),))
    assert (ApprovalQuery().cursor, ApprovalQuery().limit, ApprovalQuery().payload) == ("", 50, "sentence")


def test_a_page_is_of_an_index_that_is_not_behind() -> None:
    assert not ApprovalPage((), None).is_index_behind
