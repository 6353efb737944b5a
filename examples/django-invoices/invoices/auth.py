"""Authentication during development: every caller is the first superuser, or anonymous where there is none."""

from django.contrib.auth import get_user_model

from mcpace.django import AllowAny


class Development(AllowAny):
    """Gives every caller a superuser's rights, so it must never be used in production."""

    def __init__(self):
        super().__init__(user=lambda: get_user_model().objects.filter(is_superuser=True).first())
