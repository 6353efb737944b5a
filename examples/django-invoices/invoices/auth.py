"""Who calls while the project is developed: the first superuser, or nobody."""

from django.contrib.auth import get_user_model

from mcpace.django import AllowAny


class Development(AllowAny):
    """Never in production: every caller has a superuser's rights."""

    def __init__(self):
        super().__init__(user=lambda: get_user_model().objects.filter(is_superuser=True).first())
