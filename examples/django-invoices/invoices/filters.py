"""How invoices can be narrowed down."""

import django_filters

from invoices.models import Invoice


class InvoiceFilter(django_filters.FilterSet):
    """By status, by customer, by due date."""

    customer = django_filters.CharFilter(field_name="customer__name", lookup_expr="icontains")
    due_before = django_filters.DateFilter(field_name="due", lookup_expr="lt")

    class Meta:
        model = Invoice
        fields = ("status",)
