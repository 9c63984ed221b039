"""The checks of the page, in the order in which a team would use it."""

from collections.abc import Awaitable, Callable

from .appearance import (
    every_view_is_accessible,
    the_focused_element_is_visible,
    the_keyboard_is_enough,
    the_page_fits_every_screen,
)
from .deploying import (
    a_form_is_not_lost,
    a_graph_by_hand_becomes_successful,
    a_point_of_a_request_is_deployed,
    a_preset_replaces_earlier_choices,
    an_edited_manifest_fills_in_the_form,
    an_objective_becomes_successful,
    errors_are_shown_at_their_fields,
    every_field_of_a_graph_is_in_the_object,
    every_field_of_an_objective_is_in_the_object,
)
from .lists import a_list_that_is_refused_for_a_while_says_why, a_long_list_is_filtered_sorted_and_drawn_in_parts
from .rights import users_see_and_do_what_their_rights_allow
from .sessions import (
    a_form_outlives_the_session,
    a_namespace_that_is_created_appears,
    a_session_that_cannot_be_read_is_not_over,
    a_session_that_ends_says_why,
    a_session_that_the_browser_drops_is_explained,
    another_tabs_session_is_taken_over,
    the_list_of_namespaces_keeps_the_keyboard,
)
from .stage import Stage
from .watching import (
    a_change_by_someone_else_is_a_conflict,
    a_chat_that_fails_says_why,
    a_killed_service_loses_and_duplicates_nothing,
    a_pod_that_is_not_ready_leads_to_its_log,
    a_refusal_keeps_the_focus,
    a_view_shows_the_object_of_its_address,
    an_object_that_is_being_deleted_says_what_it_waits_for,
    decisions_are_replayed_with_another_price,
    events_arrive_as_they_happen,
    logs_say_why_they_are_missing,
    replicas_are_scaled_and_refused_with_the_reason,
    the_log_stays_where_it_is_read,
    typed_text_stays_while_another_tab_is_open,
    typed_text_stays_while_the_manifest_is_reloaded,
)

Check = Callable[[Stage], Awaitable[None]]


async def nothing_leaves_the_origin(stage: Stage) -> None:
    """No request went to another origin, and the page's content security policy blocked nothing."""
    foreign = [url for each in stage.people for url in each.foreign]
    assert not foreign, foreign[:5]
    errors = [text for each in stage.people for text in each.errors]
    assert not errors, errors[:5]
    assert stage.people, "no one used the page"


ALL: tuple[Check, ...] = (
    a_graph_by_hand_becomes_successful,
    an_objective_becomes_successful,
    a_point_of_a_request_is_deployed,
    every_field_of_a_graph_is_in_the_object,
    every_field_of_an_objective_is_in_the_object,
    a_preset_replaces_earlier_choices,
    a_form_is_not_lost,
    an_edited_manifest_fills_in_the_form,
    errors_are_shown_at_their_fields,
    a_change_by_someone_else_is_a_conflict,
    typed_text_stays_while_the_manifest_is_reloaded,
    typed_text_stays_while_another_tab_is_open,
    events_arrive_as_they_happen,
    a_view_shows_the_object_of_its_address,
    an_object_that_is_being_deleted_says_what_it_waits_for,
    replicas_are_scaled_and_refused_with_the_reason,
    a_refusal_keeps_the_focus,
    a_pod_that_is_not_ready_leads_to_its_log,
    logs_say_why_they_are_missing,
    the_log_stays_where_it_is_read,
    a_chat_that_fails_says_why,
    decisions_are_replayed_with_another_price,
    a_killed_service_loses_and_duplicates_nothing,
    a_long_list_is_filtered_sorted_and_drawn_in_parts,
    a_list_that_is_refused_for_a_while_says_why,
    users_see_and_do_what_their_rights_allow,
    a_session_that_ends_says_why,
    a_session_that_the_browser_drops_is_explained,
    a_session_that_cannot_be_read_is_not_over,
    a_form_outlives_the_session,
    another_tabs_session_is_taken_over,
    the_list_of_namespaces_keeps_the_keyboard,
    a_namespace_that_is_created_appears,
    every_view_is_accessible,
    the_keyboard_is_enough,
    the_focused_element_is_visible,
    the_page_fits_every_screen,
    nothing_leaves_the_origin,
)
